/**
 * T17: generated bad values over every annotation and field we read. Each either refuses its child with a finding, or gives an
 * object that the CRD schemas and cert-manager's webhook rules accept. Nothing throws.
 */
import { isIP } from 'node:net'
import { isThorough } from '@seamark/kit'
import { Certificate, decideSource, DNSEndpoint, HTTPProxy, unified } from '@seamark/operator'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createNamespace, crdsInUse, environmentKinds } from './test-environment.ts'

const INPUTS = isThorough ? 2_000 : 500

const CM = 'cert-manager.io/'
const ED = 'external-dns.kubernetes.io/'
const CP = 'contour-plus.cybozu.com/'
const KEYS = [
  ...[
    'issuer',
    'cluster-issuer',
    'revision-history-limit',
    'private-key-algorithm',
    'private-key-size',
    'common-name',
    'alt-names',
    'ip-sans',
    'duration',
    'renew-before',
    'renew-before-percentage',
    'usages',
    'private-key-encoding',
    'private-key-rotation-policy',
    'secret-template',
  ].map((key) => CM + key),
  ...['ttl', 'target', 'set-identifier', 'alias', 'aws-weight', 'cloudflare-proxied', 'webhook-x'].map(
    (key) => ED + key,
  ),
  ...['exclude', 'delegated-domain', 'dns-namespace', 'issuer-namespace'].map((key) => CP + key),
  'seamark.io/exclude',
]

const hostile = fc.oneof(
  fc.string({ maxLength: 80 }),
  fc.constantFrom(
    '',
    '0',
    '-1',
    '2147483648',
    '4294967296',
    'NaN',
    '1e3',
    '0x10',
    ' 1',
    '__proto__',
    'constructor',
    'null',
    'true',
    'x\r\ny',
    'a\u0000b',
    '..',
    '*',
    '*.*.x',
    'a..b',
    `${'a'.repeat(64)}.example`,
    'a.'.repeat(130),
    'xn--nxasmq6b',
    'пример',
    '0.0.0.0',
    '::',
    '::ffff:169.254.169.254',
    '169.254.169.254',
    '999.1.1.1',
    '1h',
    '90d',
    '-1h',
    '9999999999h',
    'RSA',
    'ECDSA',
    'Ed25519',
    '1024',
    '384',
    'server auth',
    'server auth,server auth',
    '{"labels":{"a":"b c"}}',
    '{"annotations":{"__proto__":"x"}}',
    '{"labels":{"__proto__":"x"}}',
    '[]',
    '{',
    'ns/name',
    'UPPER',
    'a'.repeat(300),
  ),
  fc.stringMatching(/^[a-z0-9.,:*_ -]{0,60}$/),
)
const hosts = fc.oneof(hostile, fc.stringMatching(/^(\*\.)?[a-z0-9]{1,63}(\.[a-z0-9]{1,63}){0,5}$/))

const proxies = fc.record({
  annotations: fc.dictionary(fc.constantFrom(...KEYS), hostile, { maxKeys: 4 }),
  fqdn: hosts,
  secretName: fc.oneof(fc.constant('tls'), hostile),
})

/** cert-manager's webhook, from its documented rules. */
function webhookFaults({ spec }: Certificate): string[] {
  const faults: string[] = []
  if (Buffer.byteLength(spec.commonName ?? '') > 64) faults.push('commonName')
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(spec.secretName)) faults.push('secretName')
  if (spec.issuerRef.name === '') faults.push('issuerRef')
  if (spec.revisionHistoryLimit !== undefined && spec.revisionHistoryLimit < 1) faults.push('revisionHistoryLimit')
  const { algorithm = 'RSA', size = 0 } = spec.privateKey ?? {}
  if (algorithm === 'RSA' && size !== 0 && (size < 2048 || size > 8192)) faults.push('privateKey.size')
  if (algorithm === 'ECDSA' && size !== 0 && ![256, 384, 521].includes(size)) faults.push('privateKey.size')
  if (spec.renewBefore !== undefined && spec.renewBeforePercentage !== undefined) faults.push('renewBefore')
  if (
    Object.keys(spec.secretTemplate?.annotations ?? {}).some(
      (key) => key.startsWith(CM) && key !== `${CM}allow-direct-injection`,
    )
  )
    faults.push('secretTemplate')
  if ((spec.ipAddresses ?? []).some((address) => isIP(address) === 0)) faults.push('ipAddresses')
  return faults
}

/** ExternalDNS' CheckEndpoint. */
function endpointFaults({ spec }: DNSEndpoint): string[] {
  return spec.endpoints.flatMap(({ recordType, targets, recordTTL, dnsName }) => [
    ...(targets.length === 0 ? ['targets'] : []),
    ...(recordType === 'A' && targets.some((target) => isIP(target) !== 4) ? ['A'] : []),
    ...(recordType === 'AAAA' && targets.some((target) => isIP(target) !== 6) ? ['AAAA'] : []),
    ...(recordType === 'CNAME' && (targets.length !== 1 || targets[0]?.endsWith('.') === true) ? ['CNAME'] : []),
    ...(!Number.isInteger(recordTTL) || recordTTL < 1 ? ['ttl'] : []),
    ...(dnsName.length > 253 ? ['dnsName'] : []),
  ])
}

it(`T17: ${INPUTS} bad inputs are refused with a reason or give objects everybody accepts (${crdsInUse})`, async () => {
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  await using environment = await embedded.start()
  await createNamespace(environment.client, 'ns')
  const options = {
    ...unified,
    services: [{ service: 'ns/lb' }],
    defaultIssuerName: 'i',
    defaultDelegatedDomain: 'acme.example',
    allowCustomDelegations: true,
  }
  let accepted = 0
  let refused = 0
  await fc.assert(
    fc.asyncProperty(proxies, async ({ annotations, fqdn, secretName }) => {
      const metadata = {
        namespace: 'ns',
        name: 'foo',
        uid: '00000000-0000-0000-0000-000000000001',
        annotations: { 'kubernetes.io/tls-acme': 'true', ...annotations },
      }
      const proxy: HTTPProxy = { metadata, spec: { virtualhost: { fqdn, tls: { secretName } } } }
      const { objects, findings } = decideSource(proxy, [{ ip: '192.0.2.1' }], options)
      for (const object of objects) {
        const isEndpoint = object.kind === 'DNSEndpoint'
        expect(isEndpoint ? endpointFaults(object as DNSEndpoint) : webhookFaults(object as Certificate)).toEqual([])
        await (isEndpoint
          ? environment.client.apply(DNSEndpoint, object as DNSEndpoint, { dryRun: true })
          : environment.client.apply(Certificate, object as Certificate, { dryRun: true }))
        accepted++
      }
      // Fewer objects than asked for always has a reason.
      refused += objects.length < 3 ? 1 : 0
      expect(objects.length === 3 || findings.length > 0 || fqdn === '' || secretName === '').toBe(true)
    }),
    { numRuns: INPUTS },
  )
  expect(Math.min(accepted, refused)).toBeGreaterThan(INPUTS / 10)
})
