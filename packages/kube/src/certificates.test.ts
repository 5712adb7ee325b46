import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { createAuthority, expiryOf, isPair, loadAuthority, splitBundle } from './certificates.ts'

const hourMs = 3_600_000

describe('certificates', () => {
  it('issues leaves that both ends of a mutual TLS connection accept', async () => {
    const authority = await createAuthority({ commonName: 'test-ca' })
    const server = await authority.issue({
      commonName: 'server',
      dnsNames: ['localhost'],
      ipAddresses: ['127.0.0.1', '::1'],
      usages: 'server',
    })
    const client = await authority.issue({ commonName: 'jane', organizations: ['dev', 'ops'], usages: 'client' })

    const listener = createServer(
      { cert: server.certPem, key: server.keyPem, ca: authority.certPem, requestCert: true },
      (socket) => socket.end(JSON.stringify(socket.getPeerCertificate().subject)),
    )
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const socket = connect({
      host: '127.0.0.1',
      port: (listener.address() as AddressInfo).port,
      ca: authority.certPem,
      cert: client.certPem,
      key: client.keyPem,
    })
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    listener.close()
    expect(JSON.parse(text)).toEqual({ CN: 'jane', O: ['dev', 'ops'] })
  })

  it('marks a leaf for its usage, and never as an authority', async () => {
    const authority = await createAuthority({ commonName: 'test-ca' })
    const purposes = { server: ['1.3.6.1.5.5.7.3.1'], client: ['1.3.6.1.5.5.7.3.2'] }
    for (const usages of ['server', 'client', 'both'] as const) {
      const leaf = new X509Certificate((await authority.issue({ commonName: 'x', usages })).certPem)
      expect(leaf.keyUsage).toEqual(usages === 'both' ? [...purposes.server, ...purposes.client] : purposes[usages])
      expect(leaf.ca).toBe(false)
      expect(leaf.verify(new X509Certificate(authority.certPem).publicKey)).toBe(true)
    }
    expect(new X509Certificate(authority.certPem).ca).toBe(true)
  })

  it('never issues a leaf that outlives its authority', async () => {
    const now = Date.UTC(2030, 0, 1)
    const authority = await createAuthority({ commonName: 'test-ca', validForMs: hourMs, now: () => now })
    const short = await authority.issue({ commonName: 'short', usages: 'server', validForMs: hourMs / 2 })
    const long = await authority.issue({ commonName: 'long', usages: 'server', validForMs: 10 * hourMs })
    expect(expiryOf(short.certPem)).toBe(now + hourMs / 2)
    expect(expiryOf(long.certPem)).toBe(now + hourMs)
  })

  it('loads a stored authority, and rejects a key of another one', async () => {
    const first = await createAuthority({ commonName: 'first' })
    const other = await createAuthority({ commonName: 'other' })
    const again = await loadAuthority({ certPem: first.certPem, keyPem: first.keyPem })
    const leaf = await again.issue({ commonName: 'leaf', usages: 'server' })
    expect(new X509Certificate(leaf.certPem).checkIssued(new X509Certificate(first.certPem))).toBe(true)
    expect(new X509Certificate(leaf.certPem).verify(new X509Certificate(first.certPem).publicKey)).toBe(true)

    await expect(loadAuthority({ certPem: first.certPem, keyPem: other.keyPem })).rejects.toThrow('do not match')
    await expect(loadAuthority({ certPem: 'nonsense', keyPem: other.keyPem })).rejects.toThrow('do not match')
    expect(isPair(leaf)).toBe(true)
    expect(isPair({ certPem: leaf.certPem, keyPem: '' })).toBe(false)
  })

  it('rejects what is not an IP address instead of issuing an unusable certificate', async () => {
    const authority = await createAuthority({ commonName: 'test-ca' })
    const wrong = authority.issue({ commonName: 'x', ipAddresses: ['127.0.0.300'], usages: 'server' })
    await expect(wrong).rejects.toThrow('"127.0.0.300": not an IP address')
  })

  it('splits a bundle into its certificates', async () => {
    const [a, b] = await Promise.all(['a', 'b'].map((commonName) => createAuthority({ commonName })))
    expect(splitBundle(`# old\n${a?.certPem}\n${b?.certPem}`)).toEqual([a?.certPem, b?.certPem])
    expect(splitBundle('')).toEqual([])
  })
})
