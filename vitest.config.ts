import { defineConfig } from 'vitest/config'

/** Set to a file's name by continuous integration, which reads its counts. */
const report = process.env.CI_REPORT

export default defineConfig({
  test: {
    include: ['test/{unit,integration,e2e,faults,model}/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: report ? ['default', 'json'] : ['default'],
    ...(report ? { outputFile: { json: report } } : {}),
  },
})
