/** The gateway gives a match to the object that every other capability gives the host (`compareAge`). */
import { ageOf, compareAge } from '@seamark/dialects'
import { Ingress } from '@seamark/kube'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { run } from '../../testing/build-fixture.ts'
import { object, service } from '../../testing/index.ts'

const word = fc.constantFrom('a', 'a-1', 'a.b', 'b', 'shop', 'shop-2')
const ingresses = fc.uniqueArray(
  fc.record({ namespace: word, name: word, second: fc.constantFrom(0, 1), uid: fc.uuid() }),
  { minLength: 2, maxLength: 5, selector: ({ namespace, name }) => `${namespace}/${name}` },
)

it('a match of several Ingresses is served for the oldest, in the order of age', () => {
  fc.assert(
    fc.property(ingresses, (all) => {
      const paths = [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }]
      const objects = all.map(({ namespace, name, second, uid }) =>
        object(
          'Ingress',
          `${namespace}/${name}`,
          { spec: { rules: [{ host: 'x.test', http: { paths } }] } },
          { uid, creationTimestamp: `2026-01-01T00:00:0${second}Z` },
        ),
      )
      const services = [...new Set(all.map(({ namespace }) => namespace))].map((each) => service(`${each}/web`))
      const [oldest] = objects.map((each) => ageOf(Ingress, each)).toSorted(compareAge)
      const served = run(...services, ...objects).ir.listeners[0]?.hosts[0]?.routes.map(({ origin }) => origin)
      expect(served).toMatchObject([{ namespace: oldest?.namespace, name: oldest?.name }])
    }),
  )
})
