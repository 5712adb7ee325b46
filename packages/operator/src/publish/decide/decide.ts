/**
 * The decision of publish: a source and its facts → the desired children, with a reason for each that is not desired.
 * Pure and synchronous; `explain`, `--dry-run`, `--shadow` and the controller use the same value.
 *
 * Order of the checks as in contour-plus: deletion, exclude, class, host, then each child separately, so that a missing
 * Service does not prevent a certificate.
 */
import { annotation, EXCLUDE_CHILDREN, keysUnder } from '../annotation-keys.ts'
import { decideCertificate } from './certificate.ts'
import { CHILD_ROLES, type ChildRole, held, unwanted, type ChildDecision, type DesiredChild } from './child.ts'
import { isOfClass } from '../sources/class-filter.ts'
import { decideDelegation } from './delegation.ts'
import { decideDns } from './dns-endpoint.ts'
import { type Finding, note, warning } from '../../finding.ts'
import { claimKey, type Claim, isConflict } from '../sources/host-claim.ts'
import { findHostFault, normalizeHost } from '@seamark/dialects'
import type { PublishOptions } from '../options.ts'
import type { Source, Target } from '../sources/source.ts'
import type { Endpoint } from '../../api/dns-endpoint.ts'
import type { HostPublications } from './host-publications.ts'

export interface Facts {
  readonly source: Source
  readonly target: Target
  /** By `claimKey`; a host without an entry belongs to the source. */
  readonly claims: ReadonlyMap<string, Claim>
  readonly publications: HostPublications
  /** The endpoints that its DNSEndpoints have now. */
  readonly published: readonly Endpoint[]
}

export interface Decision {
  readonly children: Readonly<Record<ChildRole, ChildDecision>>
  /** Set when the HTTPProxy must refer to a delegated Secret. */
  readonly secretName?: string
  /** The source has a class that another instance may serve. */
  readonly isOtherClass?: boolean
  /** About the source as a whole; those about one child are in `children`. */
  readonly findings: readonly Finding[]
}

export function decide(facts: Facts, options: PublishOptions): Decision {
  const { source } = facts
  const { exclude } = keysUnder(options.annotationPrefix)
  if (annotation(source.annotations, exclude) === 'true')
    return all(held(), note('Excluded', `annotation ${exclude}; its objects are left as they are`))
  if (!isOfClass(source, options.ingressClassName)) {
    const decision = all(unwanted(), note('ClassNotWatched', `its ingress class is not ${options.ingressClassName}`))
    return { ...decision, isOtherClass: true }
  }
  if (source.hosts.length === 0) return all(unwanted(), note('HostMissing', 'the source has no host'))
  const findings: Finding[] = [...source.findings]
  const valid = source.hosts.filter((host) => isValid(host, findings))
  if (valid.length === 0) return all(held(), ...findings)
  const own = valid.filter((host) => isOwn(host, facts, findings))
  const hosts = {
    dns: own.filter((host) => !isBalanced(host, facts)),
    challenges: own,
    tls: valid.filter((host) => !isClaimedElsewhere(host, facts)),
  }
  return decideChildren(facts, hosts, options, findings)
}

function all(child: ChildDecision, ...findings: Finding[]): Decision {
  const children = { dns: child, delegation: child, certificate: child, 'tls-delegation': child }
  return { children, findings }
}

function isValid(host: string, findings: Finding[]): boolean {
  const fault = findHostFault(normalizeHost(host))
  if (fault === undefined) return true
  findings.push(warning('HostInvalid', `host ${JSON.stringify(host.slice(0, 100))} ${fault}`))
  return false
}

function isOwn(host: string, facts: Facts, findings: Finding[]): boolean {
  const claim = facts.claims.get(claimKey(host))
  if (claim === undefined || claim.state === 'won') return true
  if (claim.state === 'denied') {
    findings.push(warning('NameNotGranted', claim.why))
    return false
  }
  if (claim.state === 'waiting') {
    findings.push(
      note(
        'ClaimPending',
        `host ${host} was released by another namespace less than 30 s ago; it is published after that`,
      ),
    )
    return false
  }
  const { kind, namespace, name, createdAt } = claim.to
  const finding = isClaimedElsewhere(host, facts) ? warning : note
  findings.push(finding('ClaimHeldByOther', `host ${host} belongs to ${kind} ${namespace}/${name} since ${createdAt}`))
  return false
}

function isClaimedElsewhere(host: string, { source, claims }: Facts): boolean {
  const claim = claims.get(claimKey(host))
  if (claim === undefined || claim.state === 'won') return false
  if (claim.state === 'waiting' || claim.state === 'denied') return true
  return isConflict(source, claim.to)
}

function isWaiting(facts: Facts): boolean {
  return [...facts.claims.values()].some((claim) => claim.state === 'waiting')
}

const EXCLUDED = unwanted(note('Excluded', `annotation ${EXCLUDE_CHILDREN}`))

function decideChildren(
  facts: Facts,
  hosts: { dns: readonly string[]; challenges: readonly string[]; tls: readonly string[] },
  options: PublishOptions,
  findings: readonly Finding[],
): Decision {
  const { source } = facts
  const excluded = readExcluded(source, options)
  const hasEndpoints = options.children.includes('DNSEndpoint')
  const challengeGate = findGate('dns', hosts.challenges, facts, excluded, hasEndpoints)
  const tlsGate = findGate('tls', hosts.tls, facts, excluded, options.children.includes('Certificate'))
  const tls =
    tlsGate === undefined
      ? decideCertificate(source, hosts.tls, options, facts.claims)
      : { certificate: tlsGate, tlsDelegation: { ...tlsGate, findings: [] } }
  return {
    children: {
      dns: challengeGate ?? decideHosts(facts, hosts, options),
      delegation:
        challengeGate === undefined
          ? decideDelegation(source, hosts.challenges, options)
          : { ...challengeGate, findings: [] },
      certificate: tls.certificate,
      'tls-delegation': tls.tlsDelegation,
    },
    ...('secretName' in tls && tls.secretName !== undefined && { secretName: tls.secretName }),
    findings,
  }
}

function isBalanced(host: string, { publications }: Facts): boolean {
  return publications.get(claimKey(host))?.by === 'balance'
}

/** Balance's hosts are left out; what publish wrote for one stays until balance's DNSEndpoint has it. */
function decideHosts(
  facts: Facts,
  { dns, challenges }: { dns: readonly string[]; challenges: readonly string[] },
  options: PublishOptions,
): ChildDecision {
  const { source, target, publications, published } = facts
  const balanced = challenges.filter((host) => !dns.includes(host))
  const kept = published.filter(({ dnsName }) => {
    const publication = publications.get(claimKey(dnsName))
    return publication?.by === 'balance' && !publication.isInPlace
  })
  const findings = balanced.map((host) => describePublication(host, kept, facts))
  if (dns.length > 0) {
    const decided = decideDns(source, { hosts: dns, kept }, target, options)
    return { ...decided, findings: [...findings, ...decided.findings] }
  }
  return kept.length > 0 ? held(...findings) : unwanted(...findings)
}

function describePublication(host: string, kept: readonly Endpoint[], { publications }: Facts): Finding {
  const publication = publications.get(claimKey(host))
  const isKept = kept.some(({ dnsName }) => claimKey(dnsName) === claimKey(host))
  const until = isKept ? '; what publish wrote stays until balance has published it' : ''
  if (publication?.by !== 'balance' || publication.holder === undefined)
    return note('BalancePublishes', `host ${host} is of a root, and balance publishes it${until}`)
  const { namespace, name, createdAt } = publication.holder.age
  const holder = `DNSLoadBalancer ${namespace}/${name}`
  return publication.isConflict
    ? warning('ClaimHeldByOther', `host ${host} belongs to ${holder} since ${createdAt}${until}`)
    : note('BalancePublishes', `host ${host} is published for ${holder}${until}`)
}

/** The decision for a whole group of children, when it does not depend on the child. */
function findGate(
  group: 'dns' | 'tls',
  hosts: readonly string[],
  facts: Facts,
  excluded: ReadonlySet<string>,
  isOn: boolean,
): ChildDecision | undefined {
  // Objects of a disabled kind are never changed.
  if (!isOn) return held()
  if (facts.source.asks !== 'both' && facts.source.asks !== group) return unwanted()
  if (excluded.has(group)) return EXCLUDED
  if (hosts.length === 0) return isWaiting(facts) ? held() : unwanted()
  return undefined
}

const NONE: ReadonlySet<string> = new Set()

function readExcluded(source: Source, options: PublishOptions): ReadonlySet<string> {
  const text = options.exclude ? annotation(source.annotations, EXCLUDE_CHILDREN) : undefined
  return text === undefined ? NONE : new Set(text.split(',').map((word) => word.trim()))
}

export function desiredChildren({ children }: Decision): readonly DesiredChild[] {
  const desired: DesiredChild[] = []
  for (const role of CHILD_ROLES) {
    const child = children[role]
    if (child.state === 'wanted') desired.push(...child.desired)
  }
  return desired
}

export function findingsOf({ findings, children }: Decision): readonly Finding[] {
  const all = [...findings]
  for (const role of CHILD_ROLES) all.push(...children[role].findings)
  return all
}
