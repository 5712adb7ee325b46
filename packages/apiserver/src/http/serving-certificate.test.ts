import { X509Certificate } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { issueServingCertificate } from './serving-certificate.ts'

describe('issueServingCertificate', () => {
  const { caPem, certPem, keyPem } = issueServingCertificate(['localhost', '127.0.0.1', '::1', 'fe80::1:2'], Date.now())
  const ca = new X509Certificate(caPem)
  const leaf = new X509Certificate(certPem)

  it('creates a CA that signed the leaf', () => {
    expect(ca.ca).toBe(true)
    expect(leaf.verify(ca.publicKey)).toBe(true)
    expect(leaf.checkIssued(ca)).toBe(true)
    expect(leaf.ca).toBe(false)
  })

  it('is valid for each host and for no other', () => {
    expect(leaf.checkHost('localhost')).toBe('localhost')
    expect(leaf.checkHost('example.com')).toBeUndefined()
    expect(leaf.checkIP('127.0.0.1')).toBe('127.0.0.1')
    expect(leaf.checkIP('::1')).toBe('::1')
    expect(leaf.checkIP('fe80::1:2')).toBe('fe80::1:2')
    expect(leaf.checkIP('127.0.0.2')).toBeUndefined()
  })

  it('is valid now, and matches its key', async () => {
    const { createPrivateKey } = await import('node:crypto')
    expect(leaf.checkPrivateKey(createPrivateKey(keyPem))).toBe(true)
    expect(Date.parse(leaf.validFrom)).toBeLessThan(Date.now())
    expect(Date.parse(leaf.validTo)).toBeGreaterThan(Date.now())
  })
})
