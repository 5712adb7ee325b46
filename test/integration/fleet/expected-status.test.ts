/** What the API server says to expected statuses of health checks, on the embedded server and on a real one. */
import { Namespace } from '@seamark/kube'
import { DNSLoadBalancer, fleetCrds, GlobalIngressPolicy, installCrds, loadBalancerCrds } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { environmentKinds } from '../publish/test-environment.ts'

const POLL_OPTIONS = { timeout: 20_000, interval: 50 }
const at = (name: string) => ({ namespace: 'statuses', name })
const attempt = async (write: () => Promise<unknown>): Promise<string> => write().then(() => 'written', String)

describe.each(environmentKinds)('expected statuses on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)('are statuses and ranges, the first not higher than the last', async () => {
    await using environment = await start()
    const { client } = environment
    await client.create(Namespace, { metadata: { name: 'statuses' } })
    await installCrds(client, [...fleetCrds(), ...loadBalancerCrds()], new AbortController().signal)
    const policy = async (name: string, ...expectedStatus: string[]) =>
      attempt(async () =>
        client.create(GlobalIngressPolicy, { metadata: at(name), spec: { health: { expectedStatus } } } as never),
      )
    const balancer = async (name: string, ...expectedStatus: string[]) =>
      attempt(async () =>
        client.create(DNSLoadBalancer, {
          metadata: at(name),
          spec: { DNSName: `${name}.example.com`, healthCheck: { expectedStatus } },
        }),
      )
    // A kind that was just created is served a little later.
    await expect.poll(async () => policy('first', '200-299', '401'), POLL_OPTIONS).toBe('written')
    await expect.poll(async () => balancer('first', '200-299', '401'), POLL_OPTIONS).toBe('written')
    for (const create of [policy, balancer]) {
      expect(await create('reversed', '299-200')).toContain('the first status of a range is not higher than the last')
      expect(await create('text', '2xx')).toMatch(/expectedStatus\[0\].*should match/)
    }
  })
})
