import { expect, it } from 'vitest'
import { leaseName, portOptions } from './gateway-flags.ts'

it('installations of different Gateways or classes have different Leases (problem 9 of Contour)', () => {
  const names = [{}, { gateway: 'infra/public' }, { gateway: 'infra/private' }, { ingressClassName: 'Next,Other' }].map(
    leaseName,
  )
  expect(names).toEqual([
    'seamark-gateway',
    'seamark-gateway-infra-public',
    'seamark-gateway-infra-private',
    'seamark-gateway-next-other',
  ])
})

it('addresses of ports are PORT=HOST:PORT', () => {
  expect(portOptions({ listenerAddress: ['8081=:18081', '8082=[::1]:9'], listenerPortOffset: '-1' })).toEqual({
    ports: { 8081: { host: '::', port: 18_081 }, 8082: { host: '::1', port: 9 } },
    portOffset: -1,
  })
  for (const text of ['8081', '8081=18081', '0=:1', '70000=:1', 'http=:1'])
    expect(() => portOptions({ listenerAddress: [text], listenerPortOffset: '0' })).toThrow(/^--listener-address/)
  expect(() => portOptions({ listenerPortOffset: '1.5' })).toThrow('--listener-port-offset 1.5 is not an integer')
})
