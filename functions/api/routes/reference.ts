import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Env } from '../env.ts'

/** What a page of ours may load: what this server serves, and nothing from anywhere else. */
export const pagePolicy = {
  ...{ defaultSrc: ["'none'"], baseUri: ["'none'"], formAction: ["'none'"], frameAncestors: ["'none'"] },
  ...{ scriptSrc: ["'self'"], connectSrc: ["'self'"], imgSrc: ["'self'", 'data:'] },
  // The reference sets styles on its own elements.
  styleSrc: ["'self'", "'unsafe-inline'"],
}

/** The files of the reference that are served as the package has them, with their types. */
const files = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
} as const

/** Beside the program where it is one bundle, in the package otherwise. */
const folder = (): string =>
  existsSync(join(import.meta.dirname, 'swagger-ui.css'))
    ? import.meta.dirname
    : dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/swagger-ui.css')))

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Gatehouse API</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <main id="reference"></main>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`

const start = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#reference', deepLinking: true })\n`

/** The API reference as a page that loads nothing from outside. */
export const referenceRoutes = (app: OpenAPIHono<Env>): void => {
  app.get('/docs', (c) => c.html(page))
  app.get('/docs/start.js', (c) => c.body(start, 200, { 'content-type': 'text/javascript; charset=utf-8' }))
  for (const [name, type] of Object.entries(files))
    app.get(`/docs/${name}`, async (c) => {
      const bytes = await readFile(join(folder(), name))
      return c.body(new Uint8Array(bytes), 200, { 'content-type': type, 'cache-control': 'max-age=3600' })
    })
}
