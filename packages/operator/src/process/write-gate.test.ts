import { expect, it } from 'vitest'
import { gateWrites, WriteRefused } from './write-gate.ts'

it('every write passes the gate; when it is closed, only writes of the Lease pass', () => {
  let guard: (write: { method: string; path: string }) => void = () => undefined
  let isOpen = false
  const guardWrites = (check: typeof guard) => (guard = check)
  gateWrites({ guardWrites }, () => {
    if (!isOpen) throw new WriteRefused('PAUSED', 'paused')
  })
  const write = () => guard({ method: 'PATCH', path: '/api/v1/namespaces/b/configmaps/a' })
  expect(write).toThrow(WriteRefused)
  expect(() => guard({ method: 'PATCH', path: '/apis/cert-manager.io/v1/namespaces/b/certificates/a' })).toThrow(
    WriteRefused,
  )
  expect(() => guard({ method: 'PUT', path: '/apis/coordination.k8s.io/v1/namespaces/b/leases/a' })).not.toThrow()
  isOpen = true
  expect(write).not.toThrow()
})
