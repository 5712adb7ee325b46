/**
 * BackendTLSPolicy: TLS to the backends of HTTPRoutes and GRPCRoutes, with verification. A policy for a port of a Service wins
 * over one for the whole Service; of two for the same target the older one is used and the other one has a conflict.
 *
 * Guarantee: a backend with a policy that cannot be used gets no requests at all, rather than unverified ones.
 */
import { byAge } from '@seamark/dialects'
import { BackendTLSPolicy, type Gateway } from '@seamark/kube/gateway-api'
import { keyOf, type Immutable } from '@seamark/kube/object'
import { readCaRefs, type CaFault } from './ca-bundles.ts'
import { type BuildSettings, type Objects } from '../../draft/input.ts'
import { condition, identify, type ConditionIntent, type StatusIntent } from '../../draft/status-intent.ts'
import type { UpstreamTls } from '../../ir/model.ts'
import { GATEWAY_GROUP } from './listener.ts'

/** A limit of the schema. */
const MAX_ANCESTORS = 16

interface Entry {
  readonly policy: Immutable<BackendTLSPolicy>
  readonly conditions: ConditionIntent[]
  /** Undefined: the policy cannot be used. */
  readonly tls: UpstreamTls | undefined
  readonly ancestors: Map<string, Immutable<Gateway>>
}

export class BackendTlsPolicies {
  readonly #settings: BuildSettings
  readonly #entries: readonly Entry[]
  /** By `namespace/service`, then by name of the port; the empty name is the whole Service. */
  readonly #byTarget = new Map<string, Map<string, Entry>>()
  readonly #targeting = new Map<string, Entry[]>()

  constructor(objects: Objects, settings: BuildSettings) {
    this.#settings = settings
    this.#entries = objects
      .list(BackendTLSPolicy)
      .toSorted(byAge(BackendTLSPolicy))
      .flatMap((policy) => {
        try {
          return [this.#read(objects, policy)]
        } catch {
          // Only where the schema of the CRD is not enforced; it has no target that could be used.
          return []
        }
      })
  }

  /** TLS settings for a port of a Service; `refused`: its policy cannot be used. */
  find(service: string, portName: string): UpstreamTls | 'refused' | undefined {
    const ports = this.#byTarget.get(service)
    const entry = ports?.get(portName) ?? ports?.get('')
    return entry === undefined ? undefined : (entry.tls ?? 'refused')
  }

  /** A Gateway has a route to these Services: policies report to it. */
  addAncestor(gateway: Immutable<Gateway>, services: Iterable<string>): void {
    for (const service of services)
      for (const { ancestors } of this.#targeting.get(service) ?? []) ancestors.set(keyOf(gateway), gateway)
  }

  intents(): StatusIntent[] {
    const { controllerName } = this.#settings
    return this.#entries.map(({ policy, conditions, ancestors }) => ({
      kind: 'BackendTLSPolicy',
      ...identify(policy),
      status: {
        ancestors: [...ancestors.keys()]
          .toSorted()
          .slice(0, MAX_ANCESTORS)
          .map((key) => {
            const [namespace = '', name = ''] = key.split('/')
            return {
              ancestorRef: { group: GATEWAY_GROUP, kind: 'Gateway', namespace, name },
              controllerName,
              conditions,
            }
          }),
      },
    }))
  }

  #read(objects: Objects, policy: Immutable<BackendTLSPolicy>): Entry {
    const { namespace = '' } = policy.metadata
    const { tls, conditions } = readValidation(objects, policy)
    const targets = (policy.spec?.targetRefs ?? []).filter(({ group = '', kind = 'Service' }) => {
      return group === '' && kind === 'Service'
    })
    const entry: Entry = { policy, conditions, tls, ancestors: new Map() }
    for (const { name, sectionName = '' } of targets) {
      const service = `${namespace}/${name}`
      const list = this.#targeting.get(service) ?? []
      this.#targeting.set(service, [...list, entry])
      const ports = this.#byTarget.get(service) ?? new Map<string, Entry>()
      this.#byTarget.set(service, ports)
      const older = ports.get(sectionName)
      if (older === undefined) ports.set(sectionName, entry)
      else if (conditions[0]?.status === 'True') {
        const message = `Service ${service} has the older BackendTLSPolicy ${keyOf(older.policy)}, which is used`
        conditions[0] = condition('Accepted', false, 'Conflicted', message)
      }
    }
    return entry
  }
}

const CA_REASONS: Readonly<Record<CaFault['kind'], string>> = {
  ref: 'InvalidCACertificateRef',
  kind: 'InvalidKind',
  forbidden: 'InvalidCACertificateRef',
}

/** Conditions: Accepted, then ResolvedRefs. */
function readValidation(
  objects: Objects,
  { metadata, spec }: Immutable<BackendTLSPolicy>,
): { tls: UpstreamTls | undefined; conditions: ConditionIntent[] } {
  const { namespace = '' } = metadata
  const {
    hostname = '',
    caCertificateRefs = [],
    wellKnownCACertificates,
    subjectAltNames = [],
  } = spec?.validation ?? {}
  const resolved = condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved')
  const refuse = (reason: string, message: string, refs = resolved) => ({
    tls: undefined,
    conditions: [condition('Accepted', false, reason, message), refs],
  })
  if (wellKnownCACertificates !== undefined && wellKnownCACertificates !== '')
    return refuse('Invalid', 'wellKnownCACertificates is not supported; use caCertificateRefs')
  if (hostname === '') return refuse('Invalid', 'validation.hostname is missing')
  const { ca, fault } = readCaRefs(objects, { kind: 'BackendTLSPolicy', namespace }, caCertificateRefs)
  const refs = fault === undefined ? resolved : condition('ResolvedRefs', false, CA_REASONS[fault.kind], fault.message)
  if (ca === '') return refuse('NoValidCACertificate', fault?.message ?? 'no caCertificateRefs are given', refs)
  const names = subjectAltNames.map((each) => (each.type === 'URI' ? each.uri : each.hostname) ?? '')
  const subjectNames = names.length === 0 ? [hostname] : names.filter((name) => name !== '')
  return {
    tls: { sni: hostname, validation: { ca, subjectNames } },
    conditions: [condition('Accepted', true, 'Accepted', 'the policy is used'), refs],
  }
}
