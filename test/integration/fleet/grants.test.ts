/** Roots of namespaces that may not, or may not any more, use their host. */
import { Ingress, Namespace } from '@seamark/kube'
import { HostClaim, LeafIngress } from '@seamark/operator'
import { expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

it('a namespace that loses its grant gives up claim and leaf, and the one that has the grant gets the host', async () => {
  await using environment = await FleetEnvironment.start(['eu1'])
  const { client } = environment.hub
  await client.create(Namespace, { metadata: { name: 'rogue' } })
  await environment.register('eu1')
  for (const namespace of ['shop', 'rogue']) await environment.deploy('eu1', namespace)
  const owners = async () =>
    (await client.list(HostClaim)).items.map(({ spec }) => `${spec.namespace} ${spec.host}`).sort()
  const leaves = async () => (await client.list(LeafIngress)).items.map(({ metadata }) => metadata.name ?? '').sort()
  const served = async () =>
    (await environment.member('eu1').client.list(Ingress)).items.map(({ metadata }) => metadata.name ?? '').sort()
  await client.create(Ingress, root('old', 'shop.example.com', { namespace: 'rogue' }))
  await client.create(Ingress, root('kept', 'kept.example.net', { namespace: 'rogue' }))
  const before = environment.run()
  await expect.poll(owners, POLL_OPTIONS).toEqual(['rogue kept.example.net', 'rogue shop.example.com'])
  await expect.poll(served, POLL_OPTIONS).toEqual(['kept', 'old'])
  await before.stop()

  await client.create(Ingress, root('new', 'shop.example.com'))
  environment.run(
    {},
    {
      grants: [
        { namespace: 'shop', domains: ['shop.example.com'] },
        { namespace: 'rogue', domains: ['example.net'] },
      ],
    },
  )
  await expect.poll(owners, POLL_OPTIONS).toEqual(['rogue kept.example.net', 'shop shop.example.com'])
  await expect.poll(served, POLL_OPTIONS).toEqual(['kept', 'new'])
  await expect.poll(leaves, POLL_OPTIONS).toEqual(['ingress-kept--eu1', 'ingress-new--eu1'])
  const owned = (await environment.global('old'))?.status?.conditions?.find(({ type }) => type === 'HostsOwned')
  expect(owned).toMatchObject({ status: 'False', reason: 'NameNotGranted' })
})
