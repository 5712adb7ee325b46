import { CustomResourceDefinition, Secret } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import { freePort } from '../../integration/dns/peers.ts'
import { eventually, exists, type Life, type LifeWorld, LIMIT_MS } from './life.ts'

interface Configuration extends Obj {
  webhooks: { clientConfig: { caBundle?: string } }[]
}
const configuration = (name: string, plural: string) =>
  kind<Configuration>({ group: 'admissionregistration.k8s.io', version: 'v1', kind: name, plural, namespaced: false })
const Validating = configuration('ValidatingWebhookConfiguration', 'validatingwebhookconfigurations')
const Mutating = configuration('MutatingWebhookConfiguration', 'mutatingwebhookconfigurations')

const SECRET = 'seamark-admission'
const PROVIDERS = 'dnsproviders.loadbalancer.gardener.cloud'

/**
 * The webhooks and their certificate, with version v1 of the load balancing kinds, whose CRDs the manager installs. The API server
 * reaches no Service here, so that this life is the last one.
 */
export function admission(): Life {
  let ports: number[] = []
  let bundle: string | undefined
  return {
    parts: ['admission', 'admission.balance', 'installCRDs'],
    values: () => ({
      admission: { enabled: true, timeoutSeconds: 1 },
      config: { balance: { enabled: true }, installCRDs: true },
    }),
    flags: (replica) => ['--admission-address', `127.0.0.1:${ports[replica] ?? 0}`],
    async prepare({ client }) {
      ports = [await freePort(), await freePort(), await freePort()]
      await client.delete(CustomResourceDefinition, PROVIDERS)
    },
    async start(world) {
      await exists(world, CustomResourceDefinition, PROVIDERS)
      bundle = await isInjected(world, undefined)
    },
    async change(world, start) {
      // What cannot be used is made again, and every caller gets to know the new authority.
      const data = { 'ca.crt': '', 'ca.key': '', 'tls.crt': '', 'tls.key': '' }
      await world.client.patch(Secret, `${world.home}/${SECRET}`, 'merge', { data })
      // One that starts does not wait until the time has come to look at it.
      await start()
      bundle = await isInjected(world, bundle)
    },
    takeOver: async () => undefined,
    remove: async () => undefined,
  }
}

/** Resolves with the CA bundle that every caller has, once it is another one than before. */
async function isInjected({ client }: LifeWorld, before: string | undefined): Promise<string> {
  return eventually(
    'a CA bundle',
    async () => {
      const crd = await client.find(CustomResourceDefinition, PROVIDERS)
      const configurations = await Promise.all([
        client.find(Validating, 'seamark'),
        client.find(Validating, 'seamark-balance'),
        client.find(Mutating, 'seamark-balance'),
      ])
      const bundles = [
        crd?.spec.conversion?.webhook?.clientConfig?.caBundle,
        ...configurations.flatMap(
          (each) => each?.webhooks.map(({ clientConfig }) => clientConfig.caBundle) ?? [undefined],
        ),
      ]
      const [first] = bundles
      return first !== undefined && bundles.every((each) => each === first) ? first : undefined
    },
    (now) => now !== before,
    LIMIT_MS,
  )
}
