/** Connections that send more, or less, than they should. */
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type LimitedServer, readReply, startLimitedServer } from './limited-server.ts'

/** Most memory of the whole process. 1000 bodies of 3 MiB would be 3000. */
const PEAK_MIB = 700
const maps = '/api/v1/namespaces/default/configmaps'

describe('the API server under hostile connections', () => {
  let server: LimitedServer

  beforeAll(async () => {
    server = await startLimitedServer()
  }, 60_000)

  afterAll(async () => await server.stop())

  /** Statuses of POSTs on one connection whose bodies do not end; 0 for one whose connection was closed. */
  async function postAnonymously(count: number): Promise<Set<number>> {
    const session = server.open()
    const chunk = Buffer.alloc(1024 * 1024, ' ')
    const replies = Array.from({ length: count }, async (_, index) => {
      const stream = session.request({ ':method': 'POST', ':path': maps, 'content-type': 'application/json' })
      stream.on('error', () => undefined)
      stream.write(chunk)
      return await readReply(stream, `anonymous POST ${index}`).then(
        ({ status }) => status,
        () => 0,
      )
    })
    return new Set(await Promise.all(replies))
  }

  it('refuses an anonymous client without reading its bodies', async () => {
    // Node's client resets a stream itself when more than 10 MB wait in its session.
    expect(await postAnonymously(8)).toEqual(new Set([403]))
  })

  it('keeps no bodies of an anonymous client that sends a gigabyte', async () => {
    for (const status of await postAnonymously(1000)) expect([0, 403]).toContain(status)
    expect(await server.isReady()).toBe(true)
    const peak = await server.peakMib()
    if (peak !== undefined) expect(peak).toBeLessThan(PEAK_MIB)
  })

  it('reads no body that is announced as too large', async () => {
    const session = server.open()
    const length = String(2 ** 32)
    const headers = { ':method': 'POST', ':path': '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews' }
    const stream = session.request({ ...headers, 'content-type': 'application/json', 'content-length': length })
    expect((await readReply(stream, 'POST of 4 GiB')).status).toBe(403)
  })

  it('survives connections that end in the middle of everything', async () => {
    for (let index = 0; index < 50; index += 1) {
      const session = server.open()
      const stream = session.request({ ':method': 'POST', ':path': maps })
      stream.on('error', () => undefined)
      stream.write('{"metadata":')
      await once(session, 'connect')
      session.destroy()
    }
    expect(await server.isReady()).toBe(true)
  })
})
