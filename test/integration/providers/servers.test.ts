/** The conformance kit on our own server and on the real ones: BIND, Knot, PowerDNS by update and by its API. */
import { createDnsServer, createZone, fqdn, createRRset, TsigKey } from '@seamark/dns'
import { needs } from '@seamark/kit'
import { embeddedProvider, powerdnsProvider, rfc2136Provider } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { type Key, type Peer, startBind, startKnot, startPowerDns } from '../dns/peers.ts'
import { describeProvider, type Subject } from './describe-provider.ts'
import { startPowerdnsApi } from './powerdns-api.ts'

const ZONE = 'example.test.'
const zone = { id: ZONE, name: ZONE }
const key: Key = {
  name: 'seamark',
  algorithm: 'hmac-sha256',
  secret: Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64'),
}
const text = `$ORIGIN ${ZONE}\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`
const tsig = new TsigKey(key.name, key.algorithm, key.secret)

describeProvider('our own server', true, async () => {
  const sets = [
    createRRset(ZONE, 'SOA', 300, [`ns1.${ZONE} hostmaster.${ZONE} 1 3600 600 86400 60`]),
    createRRset(ZONE, 'NS', 300, [`ns1.${ZONE}`]),
  ]
  const server = await createDnsServer({
    zones: [createZone(fqdn(ZONE), sets)],
    listen: [{ address: '127.0.0.1', port: 0 }],
  })
  return { provider: embeddedProvider({ server }), zone, close: async () => server.close() }
})

function byUpdate(start: () => Promise<Peer>): () => Promise<Subject> {
  return async () => {
    const peer = await start()
    const provider = rfc2136Provider({ name: 'ddns', server: peer.address, key: tsig, zones: [ZONE] })
    return {
      provider,
      zone,
      close: async () => {
        await provider.close?.()
        await peer.close()
      },
    }
  }
}

describeProvider(
  'BIND by RFC 2136',
  needs('named'),
  byUpdate(async () => startBind([{ origin: ZONE, text }], [key])),
)
describeProvider(
  'Knot by RFC 2136',
  needs('knotd'),
  byUpdate(async () => startKnot([{ origin: ZONE, text }], [key])),
)
describeProvider(
  'PowerDNS by RFC 2136',
  needs('pdns_server', 'sqlite3', 'pdnsutil'),
  byUpdate(async () => startPowerDns([{ origin: ZONE, text }], [key])),
)

describeProvider('PowerDNS by its API', needs('pdns_server', 'sqlite3'), async () => {
  const server = await startPowerdnsApi([ZONE])
  return {
    provider: powerdnsProvider({ name: 'pdns', url: server.url, apiKey: server.apiKey }),
    zone,
    close: async () => server.close(),
  }
})

describe.skipIf(!needs('named'))('RFC 2136 with a server that says no', () => {
  const signal = AbortSignal.timeout(20_000)
  const change = [{ from: undefined, to: { name: `www.${ZONE}`, type: 'A', ttl: 60, values: ['192.0.2.1'] } }]

  it('refuses a set above a limit of its configuration, and not the zone', async () => {
    const peer = await startBind([{ origin: ZONE, text }], [key])
    const provider = rfc2136Provider({ name: 'ddns', server: peer.address, key: tsig, zones: [ZONE] })
    const create = (label: string, values: string[]) => ({
      from: undefined,
      to: { name: `${label}.${ZONE}`, type: 'A', ttl: 60, values },
    })
    try {
      // BIND: max-records-per-type, 100 by default; the answer is SERVFAIL.
      const many = Array.from({ length: 500 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
      const good = create('good', ['192.0.2.1'])
      await expect(provider.apply(zone, [good, create('many', many)], signal)).rejects.toMatchObject({
        code: 'RecordRejected',
        outcome: 'rejected',
      })
      await provider.apply(zone, [good], signal)
      expect(await provider.read(zone, new Set([`good.${ZONE}`, `many.${ZONE}`]), signal)).toEqual([good.to])
    } finally {
      await provider.close?.()
      await peer.close()
    }
  })

  it('a refused transfer is a reason code, and never an empty zone', async () => {
    const peer = await startBind([{ origin: ZONE, text }], [key])
    const provider = rfc2136Provider({ name: 'ddns', server: peer.address, zones: [ZONE] })
    try {
      await expect(provider.read(zone, 'all', signal)).rejects.toMatchObject({
        code: 'TransferRefused',
        outcome: 'later',
      })
      await expect(provider.apply(zone, change, signal)).rejects.toMatchObject({
        code: 'PermissionDenied',
        outcome: 'later',
      })
    } finally {
      await provider.close?.()
      await peer.close()
    }
  })

  it('a wrong key is named as such, and no secret is in the error', async () => {
    const peer = await startBind([{ origin: ZONE, text }], [key])
    const secret = Buffer.from('canary-other-secret-of-32-octets').toString('base64')
    const provider = rfc2136Provider({
      name: 'ddns',
      server: peer.address,
      key: new TsigKey('seamark', 'hmac-sha256', secret),
      zones: [ZONE],
    })
    try {
      const errors = await Promise.allSettled([
        provider.read(zone, 'all', signal),
        provider.apply(zone, change, signal),
      ])
      for (const result of errors) {
        expect(result).toMatchObject({ status: 'rejected' })
        const printed =
          result.status === 'rejected'
            ? `${String(result.reason)} ${JSON.stringify(result.reason)} ${String((result.reason as Error).stack)}`
            : ''
        expect(printed).not.toContain(secret)
        expect(printed).not.toContain('canary')
      }
      expect(errors[1]).toMatchObject({ reason: { code: 'CredentialsInvalid' } })
    } finally {
      await provider.close?.()
      await peer.close()
    }
  })

  it('a server that is gone is unavailable for reads, and unknown for writes', async () => {
    const provider = rfc2136Provider({
      name: 'ddns',
      server: { address: '127.0.0.1', port: 9 },
      key: tsig,
      zones: [ZONE],
      timeoutMs: 300,
    })
    await expect(provider.read(zone, 'all', signal)).rejects.toMatchObject({
      code: 'ProviderUnavailable',
      outcome: 'later',
    })
    await expect(provider.apply(zone, change, signal)).rejects.toMatchObject({ outcome: 'unknown' })
    await provider.close?.()
  })

  it('transfers from a server and with a key of its own', async () => {
    const peer = await startBind([{ origin: ZONE, text }], [key])
    const nowhere = { address: '127.0.0.1', port: 9 }
    const provider = rfc2136Provider({
      name: 'ddns',
      server: nowhere,
      zones: [ZONE],
      timeoutMs: 300,
      transfer: { server: peer.address, key: tsig },
    })
    const swapped = rfc2136Provider({
      name: 'ddns',
      server: peer.address,
      key: tsig,
      zones: [ZONE],
      transfer: { server: nowhere },
    })
    try {
      expect(await provider.read(zone, 'all', signal)).toHaveLength(3)
      await expect(provider.apply(zone, change, signal)).rejects.toMatchObject({ outcome: 'unknown' })
      await expect(swapped.read(zone, 'all', signal)).rejects.toMatchObject({ code: 'ProviderUnavailable' })
      await swapped.apply(zone, change, signal)
      expect(await provider.read(zone, new Set([`www.${ZONE}`]), signal)).toHaveLength(1)
    } finally {
      await provider.close?.()
      await swapped.close?.()
      await peer.close()
    }
  })

  it('reads one name without a transfer when nothing changed, and sees what others change', async () => {
    const peer = await startBind([{ origin: ZONE, text }], [key])
    const provider = rfc2136Provider({ name: 'ddns', server: peer.address, key: tsig, zones: [ZONE] })
    const other = rfc2136Provider({ name: 'other', server: peer.address, key: tsig, zones: [ZONE] })
    try {
      await provider.read(zone, 'all', signal)
      await provider.apply(zone, change, signal)
      const transfersBefore = peer.log().split('AXFR started').length
      expect(await provider.read(zone, new Set([`www.${ZONE}`]), signal)).toMatchObject([{ values: ['192.0.2.1'] }])
      expect(peer.log().split('AXFR started').length).toBe(transfersBefore)
      await other.apply(zone, [{ from: change[0]!.to, to: undefined }], signal)
      expect(await provider.read(zone, new Set([`www.${ZONE}`]), signal)).toEqual([])
    } finally {
      await provider.close?.()
      await other.close?.()
      await peer.close()
    }
  })
})
