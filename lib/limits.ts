/** Every limit of the product, each written once. Sizes are bytes and durations milliseconds unless a name says otherwise. */
export const limits = {
  body: 1_000_000,
  /** How long the headers of a call, and the whole of it, may take to arrive. */
  arrivalMs: { headers: 10_000, whole: 60_000 },
  /**
   * Free bytes of the data folder's disk from which a database that had no room is opened anew; and below which, there or
   * where sessions work, no session is begun and no worker launched.
   */
  disk: { reopen: 12 * 1024 * 1024, floor: 64 * 1024 * 1024 },
  intent: 16 * 1024,
  steering: 16 * 1024,
  /** All accepted guidance of one session together. */
  guidance: 64 * 1024,
  contract: 64 * 1024,
  reason: 4096,
  labels: 16,
  labelText: 256,
  idempotencyKey: 128,
  pageSize: { default: 25, max: 100 },
  eventsPageSize: { default: 100, max: 1000 },

  checks: 32,
  setupCommands: 16,
  protectPatterns: 64,
  checkName: 128,
  command: 8192,
  checkRuns: 10,
  /** spec/coder-session.md 5.4: a check's own ceiling, its default and the operator's maximum. */
  checkTimeoutSecs: { default: 120, max: 600 },
  setupTimeoutMs: 600_000,
  /** How many paths of what stood around a tree are named. */
  surroundingsNamed: 20,
  /** A check that is red on the untouched tree is run there once more where its first run took less than this. */
  baselineRepeatMs: 30_000,

  /**
   * What an engine, a setup or a check may take: bytes of its worktree on the disk, ignored files and all, bytes of its
   * output, and what has to stay free on that disk; how often the room is looked at, and the tree at most.
   */
  run: {
    tree: 8 * 1024 * 1024 * 1024,
    output: 1024 * 1024 * 1024,
    free: 32 * 1024 * 1024,
    lookMs: 250,
    walkMs: 2_000,
  },

  /** Head and tail of a check's output kept in its result; the full text is an artifact. */
  outputHead: 2048,
  outputTail: 4096,
  /** The most of a failing run's output that is searched for a suspicion and compared with that of other runs. */
  comparedOutput: 1024 * 1024,
  /** The line of an output that raised a suspicion, in characters. */
  suspicion: 160,
  /** The most of one command's output that is kept as an artifact; the middle of a longer one is left out and counted. */
  artifact: 16 * 1024 * 1024,

  /** spec/coder-session.md 8. */
  iterations: { default: 8, max: 100 },
  wallSecs: { default: 3600, max: 86_400 },
  repairInvokes: { default: 2, max: 20 },
  transientRetries: { default: 1, max: 10 },
  engineTimeoutMs: 3_600_000,
  /** What an engine is told in one iteration. */
  prompt: 256 * 1024,

  /** spec/workflow-state.md C.3. */
  consecutiveFailures: 3,
  infraFailures: 5,
  preflightRetries: 3,
  checkpointResumes: 3,
  /** Steps in a row that had nothing to do, before the next one is a fault; the straight steps of an iteration are three. */
  sentAway: 12,
  /** Validate failures of a whole session, which nothing resets; at this many a person is asked. */
  totalFailures: 10,
  /** A rate limit that lifts later than this is not waited for; of one without a reset time, the first wait. */
  rateLimitWaitMs: 7 * 24 * 3600_000,
  rateLimitGuessMs: 60_000,

  gateMs: 7 * 24 * 3600_000,
  /** What a gate shows a person, in characters (spec/workflow-state.md C.8). */
  gateContext: 300,
  /** spec/coder-session.md 4.4: how long a question of an engine waits for its answer, and its size. */
  questionMs: 600_000,
  question: 4096,
  answer: 16 * 1024,
  /** A slot that its session did not renew for this long can be taken by another. */
  slotLeaseMs: 600_000,
  /** spec/coder-session.md 8: finished sessions that a team keeps. */
  retention: { sessions: 200, days: 30 },
  leaseMs: 30_000,
  heartbeatMs: 5_000,
  /** How long a worker step may go without a heartbeat, its launch included. */
  taskHeartbeatSecs: 120,
  /** TERM to KILL for a child's process group. */
  killGraceMs: 2_000,
  commandPollMs: 20_000,

  /** The most of a git command's output that is held in memory. */
  gitOutput: 256 * 1024 * 1024,
  gitTimeoutMs: 300_000,
  /** A fetch or push of a large repository. */
  gitRemoteTimeoutMs: 1_800_000,
  /** Paths named in one preflight problem; the others are counted. */
  namedPaths: 20,
  /** Uncommitted work in the source of a session: paths that are named, and how long each look may take. */
  uncommitted: { named: 5, ms: 10_000 },

  journalEntry: 64 * 1024,
  journalBatch: { entries: 200, bytes: 128 * 1024 },
  /** A fold never has to go on from further back than about this many entries. */
  snapshotEvery: 500,
  /**
   * A finished session's journal as one object: the entries of a frame; what one seal takes in at most, in compressed
   * bytes, entries and segments, the rest staying as it is, so that it fits the sweep's memory and time; what the
   * session's last step seals itself, in entries and in time; and how long covered segments are kept at least for who
   * began to read them, which no call of the API outlasts.
   */
  seal: {
    frameEntries: 256,
    bytes: 128 * 1024 * 1024,
    entries: 1_000_000,
    segments: 10_000,
    atOnce: { entries: 2000, ms: 10_000 },
    graceMs: 600_000,
  },
  /** The data of one entry, wherever it is kept. */
  entryData: 16 * 1024 * 1024,
  /** Facts that a worker states at once: a message with all the calls that it may hold, each requested, and a few more. */
  statedBatch: 260,
  /** Batches of records that a session remembers, to answer a repeat as it did at first. */
  recordBatches: 64,
  /** The most of a transcript that is in an answer itself; a larger one is fetched from its own address. */
  inlineTranscript: 1024 * 1024,
  approvalPatch: 512 * 1024,
  reviewedPaths: 2000,
  /** A file of the base that is read to find out what else a command starts. */
  readForReview: 64 * 1024,
  stateOutput: 2048,
  subject: 72,

  /** spec/session-record.md B.2 and B.5: what the agent's records may hold; text and JSON in bytes of UTF-8. */
  record: {
    selector: 128,
    metadata: { namespaces: 16, bytes: 16 * 1024, depth: 8 },
    toolName: 128,
    arguments: { bytes: 256 * 1024, depth: 32 },
    text: 1024 * 1024,
    inlineImage: 6 * 1024 * 1024,
    imageReference: 1024,
    blocks: 256,
    reason: 4096,
    failureCode: 128,
    failureMessage: 4096,
    providerCallId: 256,
    unknownType: 128,
    /** Containers within each other in one line of the interchange form. */
    lineDepth: 128,
    hosted: {
      url: 8 * 1024,
      title: 1024,
      text: 64 * 1024,
      sources: 64,
      continuation: { bytes: 4 * 1024 * 1024, depth: 64 },
    },
    codeChange: { path: 4096, hunks: 32, hunkLines: 128, lines: 1024, line: 1024, patch: 64 * 1024 },
    webFetch: { url: 2048, title: 4096, mimeType: 128, bodyCharacters: 100_000, redirects: 10 },
  },

  /**
   * How long a write to a session tries again while other writes come first, its random pause between two tries, and how
   * long those behind it in the same process wait for it.
   */
  contention: { ms: 15_000, pauseMs: { least: 5, most: 60 }, turnMs: 250 },
  /** A call to DynamoDB, S3 or Step Functions: to be connected, and to be answered. */
  awsCallMs: { connect: 5_000, answer: 30_000 },

  sessionTokenMs: 24 * 3600_000,
  /**
   * A session as one archive, and an import of records (spec/session-record.md B.7): bytes as they are uploaded and when
   * they are unpacked, entries of the journal, files, and bytes of one of them (the journal aside) and of the manifest that names them.
   */
  archive: {
    bytes: 64 * 1024 * 1024,
    unpacked: 256 * 1024 * 1024,
    entries: 100_000,
    files: 10_000,
    file: 64 * 1024 * 1024,
    /** The document has to fit into the session's item. */
    document: 384 * 1024,
    manifest: 4 * 1024 * 1024,
  },
  /**
   * How long an import may write once it holds its session's id, and how long it keeps the id to itself. The second
   * leaves the sweep, which removes what a dead import wrote, no chance to meet the first.
   */
  importWriteMs: 15 * 60_000,
  importHoldMs: 2 * 3600_000,
  /** An upload that nobody imported is removed after this. */
  uploadDays: 1,

  idempotencyTtlMs: 24 * 3600_000,
  /** A call holds its key under a lease that it renews while it runs; what died leaves its key to a repeat after this. */
  idempotencyLeaseMs: 6_000,
  idempotencyRenewMs: 2_000,
  presignSecs: 900,
  /** The longest silence of a stream. */
  ssePingMs: 15_000,
  /**
   * Pauses between two looks for a journal's next segment, from the first to the longest; and after how long without
   * one the session itself is looked at.
   */
  tail: { firstMs: 100, mostMs: 1_000, lookMs: 5_000 },
} as const
