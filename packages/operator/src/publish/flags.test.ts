import { describe, expect, it } from 'vitest'
import { CONTOUR_PLUS_FLAGS, environmentName, type FlagValues, parseDurationMs, readContourPlusFlags } from './flags.ts'

const service = { 'service-name': 'ns/lb' }

function read(flags: FlagValues, env: Record<string, string> = {}) {
  return readContourPlusFlags(flags, env)
}

function settings(flags: FlagValues, env: Record<string, string> = {}) {
  const result = read({ ...service, ...flags }, env)
  if (!result.ok) throw new Error(result.message)
  return result.settings
}

describe('the command line of contour-plus', () => {
  it('has the nineteen flags', () => {
    expect(Object.keys(CONTOUR_PLUS_FLAGS)).toHaveLength(19)
    expect(environmentName('certificate-apply-retry-base-delay')).toBe('CP_CERTIFICATE_APPLY_RETRY_BASE_DELAY')
  })

  it('derives type and default of a flag from its setting', () => {
    expect(Object.entries(CONTOUR_PLUS_FLAGS).map(([name, { shape, fallback }]) => [name, shape, fallback])).toEqual([
      ['metrics-addr', 'text', ':8180'],
      ['crds', 'list', 'DNSEndpoint,Certificate'],
      ['name-prefix', 'text', ''],
      ['service-name', 'text', ''],
      ['default-issuer-name', 'text', ''],
      ['default-issuer-kind', 'text', 'ClusterIssuer'],
      ['default-delegated-domain', 'text', ''],
      ['allowed-delegated-domains', 'list', ''],
      ['allow-custom-delegations', 'switch', 'false'],
      ['csr-revision-limit', 'count', '0'],
      ['ingress-class-name', 'text', ''],
      ['leader-election', 'switch', 'true'],
      ['propagated-annotations', 'list', ''],
      ['propagated-labels', 'list', ''],
      ['allowed-dns-namespaces', 'list', ''],
      ['allowed-issuer-namespaces', 'list', ''],
      ['certificate-apply-limit', 'rate', '0'],
      ['certificate-apply-retry-base-delay', 'duration', '5s'],
      ['certificate-apply-retry-max-delay', 'duration', '10m'],
    ])
    for (const [name, { help }] of Object.entries(CONTOUR_PLUS_FLAGS)) expect(help, name).not.toBe('')
  })

  it('sets the setting of each flag', () => {
    const { publish } = settings({
      crds: 'Certificate',
      'name-prefix': 'p-',
      'default-issuer-name': 'i',
      'default-issuer-kind': 'Issuer',
      'default-delegated-domain': 'd.test',
      'allowed-delegated-domains': 'a.test,b.test',
      'allow-custom-delegations': 'true',
      'csr-revision-limit': '3',
      'ingress-class-name': 'c',
      'propagated-annotations': 'a',
      'propagated-labels': 'l',
      'allowed-dns-namespaces': 'n',
      'allowed-issuer-namespaces': 'm',
      'certificate-apply-limit': '2.5',
      'certificate-apply-retry-base-delay': '1s',
      'certificate-apply-retry-max-delay': '1m',
    })
    expect(publish).toEqual({
      sources: ['HTTPProxy'],
      roots: 'ignored',
      parts: { fleet: undefined, balance: false },
      children: ['Certificate'],
      namePrefix: 'p-',
      services: [{ service: 'ns/lb' }],
      ingressClassName: 'c',
      defaultIssuerName: 'i',
      defaultIssuerKind: 'Issuer',
      defaultDelegatedDomain: 'd.test',
      allowedDelegatedDomains: ['a.test', 'b.test'],
      allowCustomDelegations: true,
      revisionHistoryLimit: 3,
      propagatedAnnotations: ['a'],
      propagatedLabels: ['l'],
      allowedDnsNamespaces: ['n'],
      allowedIssuerNamespaces: ['m'],
      certificateApply: { perSecond: 2.5, retryBaseMs: 1_000, retryMaxMs: 60_000 },
      annotationPrefix: 'contour-plus.cybozu.com/',
      prune: false,
      hostnameTargets: false,
      annotations: false,
      exclude: false,
      foreign: 'take',
      arbitrateHosts: false,
      ownedByInSecretTemplate: true,
      grants: [],
      conditions: false,
    })
  })

  it('has its defaults', () => {
    const { publish, metricsAddress, leaderElection } = settings({})
    expect(metricsAddress).toBe(':8180')
    expect(leaderElection).toBe(true)
    expect(publish.children).toEqual(['DNSEndpoint', 'Certificate'])
    expect(publish.defaultIssuerKind).toBe('ClusterIssuer')
    expect(publish.certificateApply).toEqual({ perSecond: 0, retryBaseMs: 5_000, retryMaxMs: 600_000 })
    expect(publish.sources).toEqual(['HTTPProxy'])
  })

  it('D24: a flag overrides the environment, an empty variable is ignored', () => {
    expect(settings({ 'name-prefix': 'flag-' }, { CP_NAME_PREFIX: 'env-' }).publish.namePrefix).toBe('flag-')
    expect(settings({}, { CP_NAME_PREFIX: 'env-' }).publish.namePrefix).toBe('env-')
    expect(settings({ 'name-prefix': '' }, { CP_NAME_PREFIX: 'env-' }).publish.namePrefix).toBe('')
    expect(settings({}, { CP_DEFAULT_ISSUER_KIND: '' }).publish.defaultIssuerKind).toBe('ClusterIssuer')
  })

  it('Q1: lists in variables are separated by commas or white space, flags are CSV and repeatable', () => {
    for (const text of ['Certificate,DNSEndpoint', 'Certificate DNSEndpoint', ' Certificate, DNSEndpoint\n']) {
      expect(settings({}, { CP_CRDS: text }).publish.children).toEqual(['DNSEndpoint', 'Certificate'])
    }
    expect(settings({ 'propagated-labels': ['a,b', 'c'] }).publish.propagatedLabels).toEqual(['a', 'b', 'c'])
  })

  it.each<[string, FlagValues]>([
    ['at least one service need to be enabled', { ...service, crds: '' }],
    ['unsupported CRD: dnsendpoint', { ...service, crds: 'dnsendpoint' }],
    ['service-name should be valid string as namespaced-name', {}],
    ['service-name should be valid string as namespaced-name', { 'service-name': 'lb' }],
    ['service-name should be valid string as namespaced-name', { 'service-name': 'a/b/c' }],
    ['service-name should be valid string as namespaced-name', { 'service-name': '/lb' }],
    ['unsupported Issuer kind: issuer', { ...service, 'default-issuer-kind': 'issuer' }],
    ['certificate-apply-limit must be greater than or equal to 0', { ...service, 'certificate-apply-limit': '-1' }],
    [
      'certificate-apply-retry-base-delay must be greater than 0',
      { ...service, 'certificate-apply-retry-base-delay': '0s' },
    ],
    [
      'certificate-apply-retry-max-delay must be greater than 0',
      { ...service, 'certificate-apply-retry-max-delay': '-1s' },
    ],
    [
      'certificate-apply-retry-max-delay must be greater than or equal to certificate-apply-retry-base-delay',
      { ...service, 'certificate-apply-retry-base-delay': '10s', 'certificate-apply-retry-max-delay': '1s' },
    ],
    [
      'invalid argument "soon" for "--certificate-apply-retry-max-delay" flag',
      { ...service, 'certificate-apply-retry-max-delay': 'soon' },
    ],
    ['invalid argument "maybe" for "--leader-election" flag', { ...service, 'leader-election': 'maybe' }],
  ])('D24, D25: %s', (message, flags) => {
    expect(read(flags)).toEqual({ ok: false, message })
  })

  it('parses variables as leniently as contour-plus: an invalid number is 0, an invalid boolean is false, an invalid duration fails validation', () => {
    expect(settings({}, { CP_CSR_REVISION_LIMIT: 'x', CP_LEADER_ELECTION: 'maybe' })).toMatchObject({
      leaderElection: false,
      publish: { revisionHistoryLimit: 0 },
    })
    expect(read(service, { CP_CERTIFICATE_APPLY_RETRY_BASE_DELAY: 'x' })).toMatchObject({ ok: false })
  })

  it.each([
    ['5s', 5_000],
    ['10m', 600_000],
    ['1h2m3.5s', 3_723_500],
    ['1000000', 1],
    ['-1s', -1_000],
    ['', undefined],
    ['5', 5e-6],
    ['5 s', undefined],
    ['s', undefined],
  ])('%j is %s ms, as in Go', (text, expected) => {
    expect(parseDurationMs(text)).toBe(expected)
  })
})
