/**
 * What a namespace may let the prober ask: whoever can write a load balancer chooses where the manager connects, and learns from the
 * verdict what was answered. Pure.
 *
 * A namespace that the operator does not trust learns only whether its own virtual host answers with a status at a port of
 * services: no text of the body, no header of its own, no other Host or TLS server name, and no port of nodes or the control plane.
 * What the default GlobalIngressPolicy of the manager's namespace asks for is permitted to all, because every root gets it.
 */
import type { Immutable } from '@seamark/kube'
import { keyOf, type Obj } from '@seamark/kube/object'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { DEFAULT_POLICY_NAME, GlobalIngressPolicy } from '../api/global-ingress-policy.ts'
import { isNameOf } from '../health/policy.ts'

export interface ProbeRules {
  isTrusted(namespace: string): boolean
  /** The policy of roots that have none of their own; only the operator writes it. */
  readonly defaultPolicy?: {
    find(): Immutable<GlobalIngressPolicy> | undefined
    isSame(object: Immutable<Obj>): boolean
  }
}

/**
 * @param trustedNamespaces of balance.trustedNamespaces; objects of the manager's own namespace are always trusted
 * @param reader of policies; undefined: this process has none
 */
export function probeRules(
  trustedNamespaces: readonly string[],
  managerNamespace: string,
  reader?: { get(kind: typeof GlobalIngressPolicy, key: string): Immutable<GlobalIngressPolicy> | undefined },
): ProbeRules {
  const trusted = new Set([...trustedNamespaces, managerNamespace])
  const policyKey = `${managerNamespace}/${DEFAULT_POLICY_NAME}`
  return {
    isTrusted: (namespace) => trusted.has(namespace) || trusted.has('*'),
    ...(reader !== undefined && {
      defaultPolicy: {
        find: () => reader.get(GlobalIngressPolicy, policyKey),
        isSame: (object) => keyOf(object) === policyKey,
      },
    }),
  }
}

/** Below it services listen that no load balancer publishes, such as SSH, mail and name servers. */
const FIRST_USER_PORT = 1024
const WEB_PORTS: readonly number[] = [80, 443]
/** etcd, API server, cloud controller, kubelet, kube-proxy, controller manager, scheduler. */
const CONTROL_PORTS: ReadonlySet<number> = new Set([
  2379, 2380, 6443, 10_248, 10_249, 10_250, 10_255, 10_256, 10_257, 10_258, 10_259,
])

/** Why the health check of a load balancer is not run, and what to do; undefined: it is. */
export function findProbeFault(
  { metadata: { namespace = '' }, spec }: Immutable<DNSLoadBalancer>,
  dnsName: string,
  rules: ProbeRules,
): string | undefined {
  const { healthCheck = {} } = spec
  if (rules.isTrusted(namespace)) return undefined
  const given = rules.defaultPolicy?.find()?.spec.health
  const isName = (host: string): boolean => isNameOf(dnsName, host) || host === given?.host
  const { bodyContains, headers = {}, host, sni, port } = healthCheck
  const fields = [
    ...(bodyContains === undefined ? [] : ['bodyContains']),
    ...(Object.keys(headers).length === 0 ? [] : ['headers']),
    ...(host === undefined || isName(host) ? [] : ['a host other than the DNS name']),
    ...(sni === undefined || isName(sni) ? [] : ['an sni other than the DNS name']),
    ...(port === undefined || isUserPort(port) || port === given?.port ? [] : [`the port ${port}`]),
  ]
  if (fields.length === 0) return undefined
  return `a health check with ${fields.join(', ')} needs a trusted namespace: remove it, or add '${namespace}' to balance.trustedNamespaces`
}

function isUserPort(port: number): boolean {
  return WEB_PORTS.includes(port) || (port >= FIRST_USER_PORT && !CONTROL_PORTS.has(port))
}
