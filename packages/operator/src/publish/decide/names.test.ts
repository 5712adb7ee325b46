import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { challengeHost, delegate } from './delegation.ts'
import { certificatePlace, dnsPlace, fitName } from './names.ts'
import { fromHTTPProxy } from '../sources/http-proxy.ts'
import { annotated, httpProxy, named, options } from '../../../testing/publish-fixture.ts'

describe('names of children', () => {
  const cases = [
    ['', false, 'foo'],
    ['prefix-', false, 'prefix-foo'],
    ['', true, 'bar-foo'],
    ['prefix-', true, 'prefix-bar-foo'],
  ] as const

  it.each(cases)('U33: Certificate with prefix %j, elsewhere %j: %s', (namePrefix, isElsewhere, expected) => {
    const modifiers = isElsewhere ? [annotated({ 'contour-plus.cybozu.com/issuer-namespace': 'other' })] : []
    const source = fromHTTPProxy(httpProxy(named('bar', 'foo'), ...modifiers))
    expect(certificatePlace(source, options({ namePrefix })).name).toBe(expected)
  })

  it.each(cases)('U34: DNSEndpoint with prefix %j, elsewhere %j: %s', (namePrefix, isElsewhere, expected) => {
    const modifiers = isElsewhere ? [annotated({ 'contour-plus.cybozu.com/dns-namespace': 'other' })] : []
    const source = fromHTTPProxy(httpProxy(named('bar', 'foo'), ...modifiers))
    expect(dnsPlace(source, options({ namePrefix })).name).toBe(expected)
  })

  it.each(['example.com', 'example.com.', '*.example.com', '*.example.com.'])('U32: the challenge of %s', (host) => {
    const { dnsName, targets } = delegate(challengeHost(host), 'delegated.com')
    expect(dnsName).toBe('_acme-challenge.example.com')
    expect(targets).toEqual(['_acme-challenge.example.com.delegated.com'])
  })

  it('Q17: only names over 253 bytes are shortened, and different ones stay different', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z][a-z0-9-]{0,300}$/),
        fc.stringMatching(/^[a-z][a-z0-9-]{0,300}$/),
        (a, b) => {
          expect(fitName(a).length).toBeLessThanOrEqual(253)
          expect(fitName(a) === a).toBe(a.length <= 253)
          expect(fitName(a) === fitName(b)).toBe(a === b)
          expect(fitName(fitName(a))).toBe(fitName(a))
        },
      ),
    )
  })
})
