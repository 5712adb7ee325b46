/**
 * Program of gateway-backends.test.ts, in a network namespace: the shipped `seamark gateway` in front of backends, and clients
 * that attack it. Prints a line of JSON for each attack.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { POD_ADDRESSES } from '../integration/gateway/network-namespace.ts'
import { type AttackedGateway, startAttackedGateway } from './gateway-victim.ts'
import { startLimited } from './limited-process.ts'
import { addSite, serve } from './gateway-sites.ts'
import { SMUGGLING } from './smuggling.ts'

/** How long requests are held after the last one was sent. */
const HELD_MS = 3_000

const attacks: Record<string, (gateway: AttackedGateway) => Promise<void>> = {
  '14 000 requests with 30 kB of header fields to a backend that does not answer': async (gateway) => {
    await serve(gateway, ['victim', 'web'], POD_ADDRESSES[0], (_request, response) => response.end('victim'))
    await serve(gateway, ['tenant', 'web'], POD_ADDRESSES[1], () => undefined)
    await addSite(gateway, 'victim')
    await addSite(gateway, 'tenant', { timeoutPolicy: { response: 'infinity', idle: 'infinity' } })
    const { http } = gateway.ports
    await gateway.attack('requests that are not answered', { host: 'victim.test' }, async () => {
      const client = startLimited('held-requests.ts', [`${http}`, 'tenant.test', '140', '30000'], 4_096)
      const [counts] = await client.line(/^sent .*$/)
      process.stdout.write(`${counts}\n`)
      await pause(HELD_MS)
      await client.stop()
    })
  },
  'packets with as many requests, trailers or chunks as they can have': async (gateway) => {
    await serve(gateway, ['victim', 'web'], POD_ADDRESSES[0], (_request, response) => response.end('victim'))
    await serve(gateway, ['tenant', 'web'], POD_ADDRESSES[1], (request, response) => {
      request.resume().on('end', () => response.end())
    })
    for (const name of ['victim', 'tenant']) await addSite(gateway, name)
    for (const flood of ['requests', 'trailers', 'chunks'])
      await gateway.attack(`packets of ${flood}`, { host: 'victim.test' }, async () => {
        const client = startLimited('request-floods.ts', [`${gateway.ports.http}`, flood, '10', '2'], 2_048)
        await client.line(/^sent /)
      })
  },
}

for (const [name, attack] of Object.entries({ ...attacks, ...SMUGGLING })) {
  const gateway = await startAttackedGateway()
  let error: string | undefined
  try {
    await attack(gateway)
    if (!gateway.isRunning()) error = 'the gateway ended'
  } catch (caught) {
    error = caught instanceof Error ? (caught.stack ?? caught.message) : String(caught)
  } finally {
    await gateway.stop()
  }
  process.stdout.write(`${JSON.stringify({ name, ...(error !== undefined && { error }) })}\n`)
}
process.exit()
