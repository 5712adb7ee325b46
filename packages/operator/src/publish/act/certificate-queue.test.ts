import { createQueue } from '@seamark/kube'
import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import type { Certificate } from '../../api/certificate.ts'
import { isSpecChanged } from './certificate-change.ts'
import { createCertificateQueue } from './certificate-queue.ts'

function certificate(name: string, changes: Partial<Certificate['spec']> = {}): Certificate {
  return {
    metadata: { namespace: 'ns', name, annotations: { 'contour-plus.cybozu.com/owned-by': 'ns/foo' } },
    spec: {
      dnsNames: ['a.example'],
      secretName: 's',
      issuerRef: { kind: 'Issuer', name: 'i' },
      usages: ['server auth'],
      ...changes,
    },
  }
}

const limits = { perSecond: 1, retryBaseMs: 5_000, retryMaxMs: 600_000 }

function start(apply: (certificate: Certificate) => Promise<void> = async () => undefined) {
  const clock = fakeClock()
  const applied: { atMs: number; certificate: Certificate }[] = []
  const failed: string[] = []
  const counts = { success: 0, error: 0 }
  const queue = createCertificateQueue(limits, {
    clock,
    onFailure: (item) => failed.push(item.metadata.annotations?.['contour-plus.cybozu.com/owned-by'] ?? ''),
    count: (result) => counts[result]++,
  })
  const send = async (item: Certificate): Promise<void> => {
    await apply(item)
    applied.push({ atMs: clock.monotonic(), certificate: item })
  }
  // Like the runtime's controller with one worker: one key at a time, again after the returned time.
  const keys = createQueue({ clock, onReady: () => void work() })
  let isWorking = false
  async function work(): Promise<void> {
    if (isWorking) return
    isWorking = true
    for (let key = keys.take(); key !== undefined; key = keys.take()) {
      const afterMs = await queue.process(key, send)
      keys.forget(key)
      if (afterMs !== undefined) keys.requeue(key, afterMs)
      keys.done(key)
    }
    isWorking = false
  }
  queue.onSubmit = (key) => keys.add(key)
  return { clock, queue, applied, failed, counts, stop: () => keys.close() }
}

describe('the certificate queue', () => {
  it('U35, U37: a submitted Certificate waits, and nothing is counted', async () => {
    const { queue, applied, counts, clock, stop } = start()
    queue.submit(certificate('foo'))
    await clock.advance(4_999)
    expect([queue.keys.length, applied.length, counts]).toEqual([1, 0, { success: 0, error: 0 }])
    stop()
  })

  it('U38: it is applied when it is due, and counted', async () => {
    const { queue, applied, counts, clock, stop } = start()
    queue.submit(certificate('foo'))
    await clock.advance(5_000)
    expect([queue.keys.length, applied.length, counts]).toEqual([0, 1, { success: 1, error: 0 }])
    stop()
  })

  it('U39: a failure is counted and reported to the owner', async () => {
    const { queue, failed, counts, clock, stop } = start(async () => {
      throw new Error('no')
    })
    queue.submit(certificate('foo'))
    await clock.advance(5_000)
    expect([failed, counts]).toEqual([['ns/foo'], { success: 0, error: 1 }])
    stop()
  })

  it('D33: ten at once with limit 1: none before the base delay, then one a second', async () => {
    const { queue, applied, clock, stop } = start()
    for (let index = 0; index < 10; index++) queue.submit(certificate(`c${index}`))
    await clock.advance(20_000)
    expect(applied.map(({ atMs }) => atMs)).toEqual(
      [5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map((seconds) => seconds * 1_000),
    )
    stop()
  })

  it('the newest manifest of a name wins, at the earlier time; the delay doubles until a success', async () => {
    const { queue, applied, clock, stop } = start()
    queue.submit(certificate('foo'))
    await clock.advance(2_000)
    queue.submit(certificate('foo', { dnsNames: ['b.example'] }))
    await clock.advance(3_000)
    expect(applied.map((item) => item.certificate.spec.dnsNames)).toEqual([['b.example']])
    queue.submit(certificate('foo'))
    await clock.advance(5_000)
    expect(applied).toHaveLength(2)
    stop()
  })

  it('failures of one name double its delay up to the limit', async () => {
    let fails = 3
    const { queue, applied, clock, stop } = start(async () => {
      if (fails-- > 0) throw new Error('no')
    })
    for (const delayMs of [5_000, 10_000, 20_000, 40_000]) {
      queue.submit(certificate('foo'))
      await clock.advance(delayMs - 1)
      expect(queue.keys.length).toBe(1)
      await clock.advance(1)
    }
    expect(applied).toHaveLength(1)
    stop()
  })
})

describe('a change that an authority sees', () => {
  const own = JSON.stringify({
    'f:metadata': {},
    'f:spec': { 'f:dnsNames': {}, 'f:secretName': {}, 'f:issuerRef': {}, 'f:usages': {}, 'f:privateKey': {} },
  })
  it.each([
    ['new', certificate('a'), undefined, true],
    [
      'U36: only an annotation differs',
      certificate('a', { secretTemplate: { annotations: { x: 'y' } } }),
      certificate('a'),
      false,
    ],
    ['U37: an extra name', certificate('a', { dnsNames: ['a.example', 'b.example'] }), certificate('a'), true],
    ['a key algorithm', certificate('a', { privateKey: { algorithm: 'ECDSA' } }), certificate('a'), true],
    [
      'a field that the server defaulted',
      certificate('a'),
      certificate('a', { revisionHistoryLimit: 1, issuerRef: { kind: 'Issuer', name: 'i', group: 'cert-manager.io' } }),
      false,
    ],
  ])('%s', (_, desired, live, expected) => {
    expect(isSpecChanged(desired, live, undefined)).toBe(expected)
  })

  it('a field that we wrote before and no longer set', () => {
    expect(isSpecChanged(certificate('a'), certificate('a', { privateKey: { algorithm: 'RSA' } }), own)).toBe(true)
  })
})
