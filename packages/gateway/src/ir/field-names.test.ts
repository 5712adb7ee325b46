import { expect, it } from 'vitest'
import { EDGE_SPELLINGS, isEdgeField } from './field-names.ts'

it('fields that only proxies set are known in every spelling of - and _', () => {
  const removed = ['x-forwarded-client-cert', 'x_forwarded_client_cert', 'x-forwarded_client-cert', 'x_forwarded_proto']
  const own = ['x-envoy-internal', 'x_envoy_internal', 'x-envoy_any-thing']
  expect([...removed, ...own].filter((name) => !isEdgeField(name))).toEqual([])
  const kept = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x_other', 'x-request-id']
  expect(kept.filter((name) => isEdgeField(name))).toEqual([])
})

it('what Envoy is told to remove, the built-in proxy removes too', () => {
  expect(EDGE_SPELLINGS.filter((name) => !name.includes('_') || !isEdgeField(name))).toEqual([])
  expect(new Set(EDGE_SPELLINGS).size).toBe(EDGE_SPELLINGS.length)
  expect(EDGE_SPELLINGS.filter((name) => name.endsWith('cert'))).toHaveLength(7)
})
