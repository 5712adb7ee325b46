import { describe, expect, it } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { createOwnWrites } from './own-writes.ts'

function endpoint(resourceVersion: string, generation = 2): DNSEndpoint {
  return { metadata: { namespace: 'ns', name: 'a', resourceVersion, generation }, spec: { endpoints: [] } }
}

function setUp() {
  let cached: string | undefined = '1'
  const own = createOwnWrites(() => cached)
  return {
    own,
    cache: (version: string) => (cached = version),
    apply: async (answer: DNSEndpoint, meanwhile: () => void = () => undefined) =>
      own.during(DNSEndpoint, 'ns/a', async () => {
        meanwhile()
        return answer
      }),
  }
}

describe('the echo of an own write', () => {
  it('is recognised once, and the next change is not', async () => {
    const { own, apply } = setUp()
    expect((await apply(endpoint('5'))).isDisturbed).toBe(false)
    expect(own.isOurs(DNSEndpoint, endpoint('5'))).toBe(true)
    expect(own.isOurs(DNSEndpoint, endpoint('5'))).toBe(false)
  })

  it('is recognised when it comes before the answer', async () => {
    const { own, apply } = setUp()
    const { isDisturbed } = await apply(endpoint('5'), () => expect(own.isOurs(DNSEndpoint, endpoint('5'))).toBe(true))
    expect(isDisturbed).toBe(false)
    expect(own.isOurs(DNSEndpoint, endpoint('5'))).toBe(false)
  })

  it('is not confused with a change of somebody else, before the answer or behind it', async () => {
    const { own, apply } = setUp()
    const { isDisturbed } = await apply(endpoint('5'), () => own.isOurs(DNSEndpoint, endpoint('4')))
    expect(isDisturbed).toBe(true)
    expect(own.isOurs(DNSEndpoint, endpoint('6'))).toBe(false)
  })

  it('is not waited for when nothing was written, or the object is new', async () => {
    const { own, apply, cache } = setUp()
    cache('5')
    await apply(endpoint('5'))
    expect(own.isOurs(DNSEndpoint, endpoint('5'))).toBe(false)
    await apply(endpoint('9', 1))
    expect(own.isOurs(DNSEndpoint, endpoint('9', 1))).toBe(false)
  })

  it('is nobody’s after a write that failed', async () => {
    const { own } = setUp()
    const failing = own.during(DNSEndpoint, 'ns/a', async () => Promise.reject(new Error('refused')))
    await expect(failing).rejects.toThrow('refused')
    expect(own.isOurs(DNSEndpoint, endpoint('7'))).toBe(false)
  })
})
