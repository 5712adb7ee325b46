import { expect, it } from 'vitest'
import type { DNSEndpoint, Endpoint } from '../api/dns-endpoint.ts'
import { massRequestOf } from './mass-change.ts'

const endpoint = (dnsName: string, ...targets: string[]): Endpoint => ({
  dnsName,
  recordType: 'A',
  recordTTL: 60,
  targets,
})
const object = (...endpoints: Endpoint[]): DNSEndpoint => ({
  metadata: { namespace: 'manager', name: 'c-wildcard' },
  spec: { endpoints },
})
const live = object(endpoint('*.c.example.com', '192.0.2.1', '192.0.2.2'))
const after = (...endpoints: Endpoint[]) =>
  massRequestOf(live, { state: 'apply', desired: object(...endpoints) })?.change

it('counts a deletion, another name, and targets of which none was published', () => {
  expect(massRequestOf(live, { state: 'delete' })).toEqual({
    change: 'prune',
    kind: 'DNSEndpoint',
    name: 'manager/c-wildcard',
  })
  expect(after(endpoint('*.c.example.net', '192.0.2.1', '192.0.2.2'))).toBe('retarget')
  expect(after(endpoint('*.c.example.com', '192.0.2.3'))).toBe('retarget')
})

it('counts neither a first record, nor nodes that come or go', () => {
  expect(massRequestOf(undefined, { state: 'apply', desired: live })).toBeUndefined()
  expect(massRequestOf(live, { state: 'keep' })).toBeUndefined()
  expect(after(endpoint('*.c.example.com', '192.0.2.2', '192.0.2.3'))).toBeUndefined()
  expect(after(endpoint('*.c.example.com', '192.0.2.1', '192.0.2.2'), endpoint('c.example.com', '192.0.2.1'))).toBe(
    undefined,
  )
})

it('counts another content as another change', () => {
  const contentOf = (target: string) =>
    massRequestOf(live, { state: 'apply', desired: object(endpoint('*.c.example.com', target)) })?.content
  expect(contentOf('192.0.2.3')).not.toBe(contentOf('192.0.2.4'))
})
