/** Installs the CRDs of the capabilities that are on, once for all of them (`installCRDs`). */
import { Forbidden, type Manager, messageOf, requeue, type WebhookClientConfig } from '@seamark/kube'
import { keepStoredVersions, loadBalancerCrds } from '../api/crds/dns-load-balancer-crds.ts'
import { fleetCrds } from '../api/crds/fleet-crds.ts'
import { installCrds } from '../api/crds/install-crds.ts'

export interface CrdInstaller {
  /** The fleet writes load balancers, also where balance is not on. */
  readonly fleet: boolean
  readonly balance: boolean
  /** Of the conversion between the versions of load balancers. */
  readonly conversion: WebhookClientConfig | undefined
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

const RETRY_MS = 15_000

/** A fault here ends no capability: their controllers wait for their kinds. */
export function addCrdInstaller(
  mgr: Manager,
  { fleet, balance, conversion, isWriting, untilMayWrite }: CrdInstaller,
): void {
  if (!fleet && !balance) return
  let denied = ''
  mgr
    .keyedController('crds')
    .triggers((mark) => {
      mark(['crds'])
      return () => undefined
    })
    .reconcile(async (_key, context) => {
      await untilMayWrite(context)
      if (!isWriting()) return requeue(RETRY_MS)
      const { client, signal, log } = context
      const definitions = [...(fleet ? fleetCrds() : []), ...loadBalancerCrds(withBundle(mgr, conversion))]
      try {
        for (const { name, action } of await installCrds(client, definitions, signal, keepStoredVersions))
          log.info({ crd: name, action }, 'CRD installed')
      } catch (error) {
        if (!(error instanceof Forbidden)) throw error
        const why = messageOf(error)
        if (why !== denied)
          log.warn(
            { error: why },
            'CRDs are not installed: grant get, create and patch on customresourcedefinitions.apiextensions.k8s.io, or apply the output of `seamark crds` and set installCRDs: false',
          )
        denied = why
        return requeue(RETRY_MS)
      }
      return undefined
    })
}

/** With the CA bundle: an API server that does not trust the webhook could neither read nor write the kinds. */
function withBundle(mgr: Manager, conversion: WebhookClientConfig | undefined): WebhookClientConfig | undefined {
  if (conversion === undefined) return undefined
  const caBundle = mgr.caBundle()
  return { ...conversion, ...(caBundle !== undefined && { caBundle }) }
}
