import { expect, it } from 'vitest'
import { MAX_REQUESTED_WAIT_MS } from '../requested-wait.ts'
import { errorOf } from './rest.ts'

it.each([
  [2, 2000],
  [3_000_000, MAX_REQUESTED_WAIT_MS],
  ['x', undefined],
  [-1, undefined],
  [0, undefined],
  [{}, undefined],
  [undefined, undefined],
])('a Status with retryAfterSeconds %j requests a wait of %s ms', (retryAfterSeconds, ms) => {
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 429, details: { retryAfterSeconds } }
  const response = { status: 429, headers: {}, body: Buffer.from(JSON.stringify(status)) }
  expect(errorOf({ method: 'GET', path: '/api' }, response).retryAfterMs).toBe(ms)
})

it.each([
  ['3000000', MAX_REQUESTED_WAIT_MS],
  ['7', 7000],
  ['x', undefined],
])('the header Retry-After %s requests a wait of %s ms', (value, ms) => {
  const response = { status: 429, headers: { 'retry-after': value }, body: Buffer.from('') }
  expect(errorOf({ method: 'GET', path: '/api' }, response).retryAfterMs).toBe(ms)
})
