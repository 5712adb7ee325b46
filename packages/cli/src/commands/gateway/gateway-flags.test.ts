import { expect, it } from 'vitest'
import { leaseName } from './gateway-flags.ts'

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
