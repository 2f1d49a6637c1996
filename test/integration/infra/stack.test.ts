import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Match } from 'aws-cdk-lib/assertions'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { buildDefinition } from '../../../lib/machine/definition.ts'
import { connect } from '../../../lib/store/clients.ts'
import { createTableInput, tableShape } from '../../../lib/store/table.ts'
import { synthesise } from './synthesised.ts'

let outdir: string
let synthesised: ReturnType<typeof synthesise>
beforeAll(async () => {
  outdir = await mkdtemp(join(tmpdir(), 'gatehouse-cdk-'))
  synthesised = synthesise(outdir)
})
afterAll(() => rm(outdir, { recursive: true, force: true }))
