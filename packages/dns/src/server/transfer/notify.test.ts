import { describe, expect, it } from 'vitest'
import type { DnsClient } from '../../client/client.ts'
import { DnsError } from '../../error.ts'
import { fqdn } from '../../wire/name.ts'
import { Notifier } from './notify.ts'

const ZONE = fqdn('example.test')
const SECONDARIES = [{ address: '192.0.2.1' }, { address: '192.0.2.2' }]

/** A client whose NOTIFYs are never answered, and the signals that they were sent with. */
function silentClient() {
  const signals: AbortSignal[] = []
  const notify: DnsClient['notify'] = async ({ signal }) =>
    new Promise((_resolve, reject) => {
      signals.push(signal!)
      signal!.addEventListener('abort', () => reject(new DnsError('ABORTED', 'aborted')))
    })
  return { signals, client: { notify } as DnsClient }
}

describe('NOTIFY', () => {
  it('of a newer change replaces the one that is not answered yet', async () => {
    const { client, signals } = silentClient()
    const notifier = new Notifier(client, new Map(), () => undefined)
    notifier.notify(ZONE, SECONDARIES)
    notifier.notify(ZONE, SECONDARIES)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, false, false])
    await notifier.close()
  })

  it('is neither repeated nor sent after the end', async () => {
    const { client, signals } = silentClient()
    const errors: Error[] = []
    const notifier = new Notifier(client, new Map(), (error) => errors.push(error))
    notifier.notify(ZONE, SECONDARIES)
    await notifier.close()
    expect(signals.every(({ aborted }) => aborted)).toBe(true)
    notifier.notify(ZONE, SECONDARIES)
    expect(signals).toHaveLength(2)
    expect(errors).toEqual([])
  })
})
