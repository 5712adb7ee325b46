/**
 * Reads requests.txt: independent requests, one per line, more compact than a script in TypeScript. `METHOD [TYPE]
 * [@USER] PATH [BODY]`; TYPE is that of a patch, or `table`; `GET?` repeats the request until the response is 200.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asTable, patchTypes, type Step } from './step.ts'

const line = /^(\w+)(\??) (?:(merge|json|strategic|apply|table) )?(?:@(\S+) )?(\S+)(?: (.*))?$/

export function readRequests(): Step[] {
  const lines = readFileSync(join(import.meta.dirname, 'requests.txt'), 'utf8').split('\n')
  return lines.filter((text) => text !== '' && !text.startsWith('#')).map(readRequest)
}

function readRequest(text: string): Step {
  const match = line.exec(text)
  if (match === null) throw new Error(`requests.txt: this is no request: ${text}`)
  const [, method = '', waits, type = '', user, path = '', body] = match
  const media = Object.hasOwn(patchTypes, type) ? patchTypes[type as keyof typeof patchTypes] : 'application/json'
  return {
    method,
    path,
    headers: {
      ...(type === 'table' ? asTable.headers : {}),
      ...(body !== undefined && { 'content-type': media }),
      ...(user !== undefined && { 'impersonate-user': user }),
    },
    ...(body !== undefined && { body: JSON.parse(body) as unknown }),
    ...(waits !== '' && { until: ({ status }) => status === 200 }),
  }
}
