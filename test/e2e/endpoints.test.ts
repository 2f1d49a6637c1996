import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3'
import { ListExecutionsCommand } from '@aws-sdk/client-sfn'
import { GetCommand } from '@aws-sdk/lib-dynamodb'
import { expect, test } from 'vitest'
import { keyPairSchema } from '../../infra/local/doors/key-pair.ts'
import { fromLines } from '../../lib/journal/entry.ts'
import { connect, serviceSettingsSchema } from '../../lib/store/clients.ts'
import { itemKey } from '../../lib/store/keys.ts'
import { makeRepository } from '../repositories.ts'
import { useStack } from './stack.ts'

const run = promisify(execFile)
const used = useStack()

/** What the owner of a home finds with its files: by the AWS command line where there is one, else by the SDK. */
const ownersLook = async (team: string, id: string) => {
  const endpoints = serviceSettingsSchema.parse(
    JSON.parse(readFileSync(join(used.home, 'endpoints.json'), 'utf8')),
  )
  const key = itemKey.session(team, id)
  const prefix = `teams/${team}/sessions/${id}/journal/`
  const program = process.env.GATEHOUSE_AWS_CLI ?? 'aws'
  const installed = await run(program, ['--version']).then(
    () => true,
    () => false,
  )
  if (!installed) {
    const keys = keyPairSchema.parse(JSON.parse(readFileSync(join(used.home, 'access-key.json'), 'utf8')))
    const clients = connect(endpoints, keys)
    const [executions, item, listing] = await Promise.all([
      clients.sfn.send(new ListExecutionsCommand({ stateMachineArn: endpoints.state_machine_arn })),
      clients.dynamo.send(new GetCommand({ TableName: endpoints.table, Key: key })),
      clients.s3.send(new ListObjectsV2Command({ Bucket: endpoints.bucket, Prefix: prefix })),
    ])
    const first = await clients.s3.send(
      new GetObjectCommand({ Bucket: endpoints.bucket, Key: listing.Contents?.[0]?.Key ?? '' }),
    )
    return {
      executions: executions.executions?.map(({ name }) => name),
      state: item.Item?.document.state,
      segment: (await first.Body?.transformToString()) ?? '',
    }
  }
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    AWS_CONFIG_FILE: join(used.home, 'aws-config'),
  }
  const aws = async (...args: string[]): Promise<string> =>
    (
      await run(program, ['--profile', 'gatehouse', ...args, '--output', 'json'], {
        env,
        maxBuffer: 8_000_000,
      })
    ).stdout
  const [executions, item, listing] = await Promise.all([
    aws('stepfunctions', 'list-executions', '--state-machine-arn', endpoints.state_machine_arn),
    aws(
      'dynamodb',
      'get-item',
      '--table-name',
      endpoints.table,
      '--key',
      JSON.stringify({ pk: { S: key.pk }, sk: { S: key.sk } }),
    ),
    aws('s3api', 'list-objects-v2', '--bucket', endpoints.bucket, '--prefix', prefix),
  ])
  const first: string = JSON.parse(listing).Contents[0].Key
  return {
    executions: JSON.parse(executions).executions.map(({ name }: { name: string }) => name),
    state: JSON.parse(item).Item.document.M.state.S,
    segment: await aws('s3', 'cp', `s3://${endpoints.bucket}/${first}`, '-'),
  }
}

test('with the files of the home its owner sees the session in all three services', async () => {
  const { directory } = makeRepository()
  const { id } = await used.api.start({
    ...{ repo: directory, intent: 'Be seen', engine_command: 'touch done', mode: 'auto' },
    contract: { checks: [{ name: 'done', command: 'test -e done' }] },
  })
  await used.api.untilGate(id, 'approval')
  const seen = await ownersLook('local', id)
  expect(seen.executions).toEqual([`${id}-1`])
  expect(seen.state).toBe('needs_approval')
  expect(fromLines(seen.segment)[0]).toMatchObject({ sequence: 0, type: 'session_created', session_id: id })
})
