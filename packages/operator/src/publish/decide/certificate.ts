/**
 * The Certificate of a source, and the TLSCertificateDelegation when the Certificate is in another namespace.
 *
 * Values that cert-manager's schema or webhook would reject are refused here, with a finding: an object that cannot be
 * stored would be sent again without end.
 */
import { type Claim, claimKey } from '../sources/host-claim.ts'
import { apiVersionOf } from '@seamark/kube/object'
import { Certificate, type CertificateSpec } from '../../api/certificate.ts'
import { TLSCertificateDelegation } from '@seamark/kube/contour'
import { annotation, CLUSTER_ISSUER, ISSUER, TLS_ACME } from '../annotation-keys.ts'
import { readCertificateSettings } from './certificate-annotations.ts'
import { isAllowedInTemplate } from './certificate-template.ts'
import { childMetadata, held, ownerMark, pick, unwanted, type ChildDecision, type DesiredChild } from './child.ts'
import { placeFindings } from './dns-endpoint.ts'
import { type Finding, note, warning } from '../../finding.ts'
import { isObjectName } from '@seamark/dialects'
import { certificatePlace, fitName, type Place } from './names.ts'
import type { PublishOptions } from '../options.ts'
import type { Source, TlsBlock } from '../sources/source.ts'

const NO_ISSUER =
  'no issuer is named; annotate the source with cert-manager.io/issuer or cert-manager.io/cluster-issuer, or set publish.defaultIssuerName'

const USAGES = ['digital signature', 'key encipherment', 'server auth']
/** Bytes; X.520's upper bound, enforced by cert-manager's webhook. */
const COMMON_NAME_LIMIT = 64

export interface CertificateDecisions {
  readonly certificate: ChildDecision
  readonly tlsDelegation: ChildDecision
  /** The required value of the HTTPProxy's `tls.secretName`: `namespace/name` of the delegated Secret. */
  readonly secretName?: string
}

/** `hosts`: those of the source that are valid and claimed by it. */
export function decideCertificate(
  source: Source,
  hosts: readonly string[],
  options: PublishOptions,
  claims: ReadonlyMap<string, Claim>,
): CertificateDecisions {
  const none = (child: ChildDecision): CertificateDecisions => ({
    certificate: child,
    tlsDelegation: { ...child, findings: [] },
  })
  if (annotation(source.annotations, TLS_ACME) !== 'true') return none(unwanted())
  if (source.isPassthrough)
    return none(unwanted(note('TLSPassthrough', 'TLS is passed through; a certificate would not be used')))
  const place = certificatePlace(source, options)
  const findings = placeFindings(place, 'issuer-namespace')
  const issuerRef = chooseIssuer(source, options)
  if (issuerRef === undefined) return none(held(...findings, warning('IssuerNotNamed', NO_ISSUER)))
  const settings = readCertificateSettings(source.annotations, options)
  findings.push(...settings.findings)
  if (settings.spec === undefined) return none(held(...findings))
  const { commonName, dnsNames: alternatives = [] } = settings.spec
  const extra = [...(commonName === undefined ? [] : [commonName]), ...alternatives].filter(
    (name) => !hosts.includes(name),
  )
  const taken = extra.flatMap((name) => findClaimFault(name, claims.get(claimKey(name))) ?? [])
  if (taken.length > 0) return none(held(...findings, ...taken))
  const desired: DesiredChild[] = []
  for (const [index, block] of blocksOf(source, place).entries()) {
    const dnsNames = block.hosts.filter((host) => hosts.includes(host))
    const fault = findSecretFault(block.secretName)
    if (fault !== undefined) findings.push(fault)
    if (dnsNames.length === 0 || fault !== undefined || block.secretName === '') continue
    const spec = buildSpec(block.secretName, dnsNames, issuerRef, settings.spec, source, options, findings)
    const name = fitName(index === 0 ? place.name : `${place.name}-${block.secretName}`)
    const namespace = block.namespace ?? place.namespace
    if (namespace !== source.namespace && !options.allowedIssuerNamespaces.includes(namespace)) {
      findings.push(
        warning('NamespaceNotAllowed', `the Secret ${namespace}/${block.secretName} is outside the allowed namespaces`),
      )
      continue
    }
    const metadata = childMetadata(source, name, namespace, options)
    desired.push({
      role: 'certificate',
      object: { apiVersion: apiVersionOf(Certificate), kind: Certificate.kind, metadata, spec },
    })
  }
  if (desired.length === 0) return none(unwanted(...findings))
  return { certificate: { state: 'wanted', desired, findings }, ...delegateSecret(source, place, options) }
}

/** A certificate for a name allows its holder to impersonate the owner of the name. */
function findClaimFault(name: string, claim: Claim | undefined): Finding | undefined {
  if (claim?.state === 'denied') return warning('NameNotGranted', `the certificate would have ${name}: ${claim.why}`)
  if (claim?.state !== 'lost') return undefined
  const { kind, namespace, name: owner } = claim.to
  return warning(
    'ClaimHeldByOther',
    `the certificate would have ${name}, which belongs to ${kind} ${namespace}/${owner}`,
  )
}

/** A Certificate in another namespace has one Secret of its own name; else each TLS block of the source is one Certificate. */
function blocksOf(source: Source, place: Place): readonly TlsBlock[] {
  return place.isElsewhere ? [{ secretName: fitName(place.name), hosts: source.hosts }] : source.tls
}

function findSecretFault(secretName: string): Finding | undefined {
  if (secretName === '' || isObjectName(secretName)) return undefined
  if (secretName.includes('/')) {
    return note(
      'SecretNotLocal',
      `the Secret ${secretName} belongs to another namespace; its certificate is made there`,
    )
  }
  return warning('SecretNameInvalid', `${JSON.stringify(secretName.slice(0, 100))} is not a valid name of a Secret`)
}

function chooseIssuer(source: Source, options: PublishOptions): { kind: string; name: string } | undefined {
  const cluster = annotation(source.annotations, CLUSTER_ISSUER)
  const local = annotation(source.annotations, ISSUER)
  const chosen =
    cluster !== undefined
      ? { kind: 'ClusterIssuer', name: cluster }
      : local !== undefined
        ? { kind: 'Issuer', name: local }
        : { kind: options.defaultIssuerKind, name: options.defaultIssuerName }
  return chosen.name === '' ? undefined : chosen
}

function buildSpec(
  secretName: string,
  dnsNames: readonly string[],
  issuerRef: { kind: string; name: string },
  settings: Partial<CertificateSpec>,
  source: Source,
  options: PublishOptions,
  findings: Finding[],
): CertificateSpec {
  const commonName = settings.commonName ?? dnsNames[0] ?? ''
  const isCommonNameFit = Buffer.byteLength(commonName) <= COMMON_NAME_LIMIT
  if (!isCommonNameFit) {
    const message = `the common name ${commonName} is longer than ${COMMON_NAME_LIMIT} bytes and is left out; the name is in dnsNames`
    findings.push(note('CommonNameOmitted', message))
  }
  const { commonName: _, dnsNames: alternatives = [], secretTemplate: extra, ...rest } = settings
  const secretTemplate = buildSecretTemplate(source, options, extra, findings)
  return {
    dnsNames: alternatives.length === 0 ? [...dnsNames] : [...new Set([...dnsNames, ...alternatives])],
    ...(isCommonNameFit && { commonName }),
    secretName,
    issuerRef,
    usages: USAGES,
    ...rest,
    ...(secretTemplate !== undefined && { secretTemplate }),
  }
}

/** cert-manager refuses its own annotations in a template, so those are omitted although they are propagated. */
function buildSecretTemplate(
  source: Source,
  options: PublishOptions,
  extra: CertificateSpec['secretTemplate'],
  findings: Finding[],
): CertificateSpec['secretTemplate'] {
  if (options.propagatedAnnotations.length + options.propagatedLabels.length === 0 && extra === undefined)
    return undefined
  const keys = options.propagatedAnnotations.filter((key) => isAllowedInTemplate(key))
  const propagated = pick(source.annotations, keys)
  const dropped = options.propagatedAnnotations.find(
    (key) => !isAllowedInTemplate(key) && annotation(source.annotations, key) !== undefined,
  )
  if (dropped !== undefined) {
    findings.push(
      note(
        'AnnotationNotPropagated',
        `${dropped} is not copied to the Secret: cert-manager forbids it in secretTemplate`,
      ),
    )
  }
  const copiesOwner = options.ownedByInSecretTemplate && Object.keys(propagated).length > 0
  const annotations = {
    ...propagated,
    ...extra?.annotations,
    ...(copiesOwner && ownedByOf(source)),
  }
  const labels = { ...pick(source.labels, options.propagatedLabels), ...extra?.labels }
  const hasAnnotations = Object.keys(annotations).length > 0
  const hasLabels = Object.keys(labels).length > 0
  if (!hasAnnotations && !hasLabels) return undefined
  return { ...(hasAnnotations && { annotations }), ...(hasLabels && { labels }) }
}

function ownedByOf(source: Source): Record<string, string> {
  const { key, value } = ownerMark(source)
  return { [key]: value }
}

/** Only Contour's kinds can refer to a Secret of another namespace. */
function delegateSecret(
  source: Source,
  place: Place,
  options: PublishOptions,
): { tlsDelegation: ChildDecision; secretName?: string } {
  if (!place.isAllowed || source.kind !== 'HTTPProxy') return { tlsDelegation: unwanted() }
  const name = fitName(place.name)
  const object = {
    apiVersion: apiVersionOf(TLSCertificateDelegation),
    kind: TLSCertificateDelegation.kind,
    metadata: childMetadata(source, name, place.namespace, options),
    spec: { delegations: [{ secretName: name, targetNamespaces: [source.namespace] }] },
  }
  return {
    tlsDelegation: { state: 'wanted', desired: [{ role: 'tls-delegation', object }], findings: [] },
    secretName: `${place.namespace}/${name}`,
  }
}
