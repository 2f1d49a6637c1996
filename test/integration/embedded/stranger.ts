import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Another user of the machine: becomes that user, and tells what a home and the ports of its services let it have. */
const { BECOME, HOME_FOLDER = '', ENDPOINTS = '[]', FILES = '[]' } = process.env
if (BECOME !== undefined) {
  process.setgroups?.([])
  process.setgid?.(Number(BECOME))
  process.setuid?.(Number(BECOME))
}
const strings = (text: string): string[] => [JSON.parse(text)].flat().map(String)

const can = (act: () => unknown): boolean => {
  try {
    act()
    return true
  } catch {
    return false
  }
}

const asked = await Promise.all(
  strings(ENDPOINTS).map(async (endpoint) => {
    const target = endpoint.includes('?') ? {} : { 'x-amz-target': 'DynamoDB_20120810.ListTables' }
    const credential = 'anything/20300101/us-east-1/dynamodb/aws4_request'
    const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host, Signature=${'0'.repeat(64)}`
    const answer = await fetch(endpoint, {
      method: 'POST',
      headers: {
        ...target,
        authorization,
        'x-amz-date': '20300101T000000Z',
        'content-type': 'application/x-amz-json-1.0',
      },
      body: '{}',
    })
    return answer.status
  }),
)
console.log(
  JSON.stringify({
    uid: process.getuid?.(),
    listed: can(() => readdirSync(HOME_FOLDER)),
    read: strings(FILES).filter((name) => can(() => readFileSync(join(HOME_FOLDER, name)))),
    asked,
  }),
)
