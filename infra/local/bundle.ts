import { join } from 'node:path'
import { build } from 'esbuild'
import { projectRoot } from './settings.ts'

/** Bundles the worker into one file, so that each launch starts in a fraction of the time; returns its path. */
export const bundleWorker = async (directory: string): Promise<string> => {
  const outfile = join(directory, 'worker.mjs')
  await build({
    entryPoints: [join(projectRoot, 'functions/worker/main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    // Some dependencies are CommonJS and call require for Node's own modules.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'error',
  })
  return outfile
}
