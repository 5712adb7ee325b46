import type { Manager, ManagerOptions } from '@seamark/kube'
import { customResourceDefinition, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'

// 1. Two versions of a kind. The one that is stored, the hub, has a place for every field of the others.
const names = { group: 'example.test', kind: 'Site', plural: 'sites', namespaced: true } as const
export const Site = defineKind({
  ...names,
  version: 'v1',
  spec: z.object({ host: z.string(), greeting: z.string().default('hello') }),
})
export const OldSite = defineKind({ ...names, version: 'v1beta1', spec: z.object({ fqdn: z.string() }) })

// 2. The CRD with both, and the address of the conversion webhook.
export const crd = customResourceDefinition(Site, {
  also: [{ kind: OldSite, served: true }],
  conversion: {
    clientConfig: { service: { namespace: 'default', name: 'site-controller', path: '/convert', port: 9443 } },
  },
})

export function declareWebhooks(mgr: Manager): void {
  mgr.webhook(Site, {
    // 3. Gets a copy of the object, and changes it. What it does not touch stays as it was sent.
    default: (site) => {
      site.spec.host = site.spec.host.toLowerCase()
    },
    // 4. Gets the object as it would be stored and as it is: no `now` on a delete, no `old` on a create.
    validate: (now, old, { userInfo }) => {
      if (now === undefined) return userInfo?.username === 'guest' ? ['metadata.name: guests do not delete sites'] : []
      if (!now.spec.host.includes('.')) return [`spec.host: ${now.spec.host} has no dot`]
      return old !== undefined && old.spec.host !== now.spec.host ? ['warning: links to the old host break'] : []
    },
  })
  // 5. Both ways; apiVersion and kind are set afterwards. What v1beta1 cannot express is kept and comes back.
  mgr.conversion<ObjectOf<typeof Site>, ObjectOf<typeof OldSite>>(Site, [
    {
      version: 'v1beta1',
      toHub: ({ spec, ...rest }) => ({ ...rest, spec: { host: spec.fqdn, greeting: 'hello' } }),
      fromHub: ({ spec, ...rest }) => ({ ...rest, spec: { fqdn: spec.host } }),
    },
  ])
}

// 6. For `manager({ … })`: where they are served, and with which certificate.
export const webhooks: NonNullable<ManagerOptions['webhooks']> = {
  listen: ':9443',
  certificate: {
    secret: 'site-controller-webhooks',
    namespace: 'default',
    dnsNames: ['site-controller.default.svc'],
    inject: { crds: ['sites.example.test'], mutating: ['sites'], validating: ['sites'] },
  },
}
