import type { Context, Ingress } from '@seamark/kube'
import { expect, it } from 'vitest'
import { ingressRoot } from '../roots/ingress.ts'
import { refuseRoot } from './root-status.ts'

it('a root with a refused policy keeps its addresses; an IP address in `hostname` is an address', async () => {
  const root: Ingress = {
    metadata: { namespace: 'shop', name: 'shop', uid: 'u1' },
    status: {
      loadBalancer: { ingress: [{ hostname: '192.0.2.1' }, { hostname: 'lb.example.net' }, { ip: '2001:DB8::1' }] },
    },
  }
  const written: unknown[] = []
  const ctx = {
    key: 'shop/shop',
    client: { patch: async () => undefined },
    event: () => undefined,
    status: async (_: object, status: unknown) => void written.push(status),
  } as unknown as Context
  await refuseRoot(ingressRoot, root, 'spec.health is invalid', ctx)
  const ingress = [{ ip: '192.0.2.1' }, { hostname: 'lb.example.net' }, { ip: '2001:db8::1' }]
  expect(written).toEqual([{ loadBalancer: { ingress } }])
})
