/** 5 000 HTTPProxies, 2 000 Ingresses and 5 000 Services: the size of the gateway's figures. */
import { objectsOf, object, rootProxy, service } from '@seamark/gateway/testing'

export const SERVICES = 5_000

export function environmentOf(revision = 0) {
  const namespace = (index: number) => `team-${index % 200}`
  const services = Array.from({ length: SERVICES }, (_, index) => service(`${namespace(index)}/svc-${index}`))
  const proxies = Array.from({ length: 5_000 }, (_, index) =>
    rootProxy(`${namespace(index)}/proxy-${index}`, `host-${index}.example.test`, {
      routes: [
        { services: [{ name: `svc-${index}`, port: 80 }], conditions: [{ prefix: '/' }] },
        {
          services: [{ name: `svc-${index}`, port: 80 }],
          conditions: [{ prefix: `/api-${index === 0 ? revision : 0}` }],
        },
      ],
    }),
  )
  const ingresses = Array.from({ length: 2_000 }, (_, index) =>
    object('Ingress', `${namespace(index)}/ingress-${index}`, {
      spec: {
        rules: [
          {
            host: `ingress-${index}.example.test`,
            http: {
              paths: [
                { path: '/', pathType: 'Prefix', backend: { service: { name: `svc-${index}`, port: { number: 80 } } } },
              ],
            },
          },
        ],
      },
    }),
  )
  return objectsOf([...services, ...proxies, ...ingresses])
}
