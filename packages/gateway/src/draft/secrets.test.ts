import type { Gateway } from '@seamark/kube/gateway-api'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  issueKeyPairs,
  type KeyPair,
  routesOf,
  run,
  runAfter,
  secret,
  verdict,
  web,
} from '../../testing/build-fixture.ts'
import { object, rootProxy } from '../../testing/index.ts'
import { BUILD_DEFAULTS } from './input.ts'

let good: KeyPair
let other: KeyPair
beforeAll(async () => {
  ;[good, other] = await issueKeyPairs()
})

describe('Secrets', () => {
  const root = (secretName: string) =>
    rootProxy('a/root', 'x.test', { virtualhost: { fqdn: 'x.test', tls: { secretName } } })

  it('are verified: a key of another certificate takes the host down and is not quoted', () => {
    const result = run(web, root('tls'), secret('a/tls', good.certPem, other.keyPem))
    expect(routesOf(result.ir)).toEqual([])
    expect(verdict(result, 'a/root')[1]).toBe(
      'TLSError/SecretNotValid: Spec.VirtualHost.TLS Secret "tls" is invalid: invalid TLS private key: it does not belong to the certificate',
    )
  })

  it('that break keep the certificate that is served, and the status says what is wrong', () => {
    const before = run(web, root('tls'), secret('a/tls', good.certPem, good.keyPem))
    const broken = [secret('a/tls', 'no certificate', good.keyPem), secret('a/tls', good.certPem, other.keyPem)]
    for (const each of broken) {
      const result = runAfter(before, [web, root('tls'), each])
      expect(result.ir).toEqual(before.ir)
      expect(verdict(result, 'a/root')).toEqual([
        'invalid',
        expect.stringMatching(
          /^TLSError\/SecretNotValid: Spec.VirtualHost.TLS Secret "tls" is invalid: .*; the last valid certificate is still served$/,
        ),
      ])
      expect(runAfter(result, [web, root('tls'), each]).ir).toEqual(before.ir)
    }
    const mended = runAfter(before, [web, root('tls'), secret('a/tls', other.certPem, other.keyPem)])
    expect(mended.ir.certificates[0]?.chain).toBe(other.certPem)
    expect(verdict(mended, 'a/root')).toEqual(['valid'])
  })

  it('that are deleted, or no longer delegated, take the host down', () => {
    const shared = secret('certs/tls', good.certPem, good.keyPem)
    const delegation = object('TLSCertificateDelegation', 'certs/d', {
      spec: { delegations: [{ secretName: 'tls', targetNamespaces: ['a'] }] },
    })
    const before = run(web, root('certs/tls'), shared, delegation)
    expect(routesOf(before.ir, 'https')).toHaveLength(1)
    expect(routesOf(runAfter(before, [web, root('certs/tls'), delegation]).ir)).toEqual([])
    expect(routesOf(runAfter(before, [web, root('certs/tls'), secret('certs/tls', 'x', 'y')]).ir)).toEqual([])
  })

  it('that break keep the certificates of Ingresses and listeners too', () => {
    const ingress = object('Ingress', 'a/web', {
      spec: {
        tls: [{ secretName: 'tls', hosts: ['i.test'] }],
        rules: [
          {
            host: 'i.test',
            http: {
              paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
            },
          },
        ],
      },
    })
    const listener = { name: 'tls', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } }
    const objects = [
      web,
      ingress,
      object('GatewayClass', 'ours', { spec: { controllerName: BUILD_DEFAULTS.controllerName } }),
      object('Gateway', 'a/gw', { spec: { gatewayClassName: 'ours', listeners: [listener] } }),
      object('HTTPRoute', 'a/web', {
        spec: {
          parentRefs: [{ name: 'gw' }],
          hostnames: ['g.test'],
          rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
        },
      }),
    ]
    const before = run(...objects, secret('a/tls', good.certPem, good.keyPem))
    const hosts = ['*', 'g.test', 'i.test']
    expect(before.ir.listeners[1]?.hosts.map(({ host }) => host)).toEqual(hosts)
    const result = runAfter(before, [...objects, secret('a/tls', good.certPem, other.keyPem)])
    expect(result.ir).toEqual(before.ir)
    expect(result.findings).toEqual([
      expect.objectContaining({
        reason: 'SecretNotValid',
        message: expect.stringMatching(
          /^spec.tls\[0\]: Secret tls cannot be used: .*; the last valid certificate is still served$/,
        ),
      }),
    ])
    const status = result.statuses.find(({ kind }) => kind === 'Gateway')?.status as Gateway['status']
    expect(
      status?.listeners?.[0]?.conditions?.map(({ type, status: is, reason }) => `${type}=${is} ${reason}`),
    ).toEqual([
      'Accepted=True Accepted',
      'ResolvedRefs=False InvalidCertificateRef',
      'Conflicted=False NoConflicts',
      'Programmed=True Programmed',
    ])
  })

  it('of another namespace need a delegation', () => {
    const shared = secret('certs/tls', good.certPem, good.keyPem)
    const refused = run(web, root('certs/tls'), shared)
    expect(verdict(refused, 'a/root')[1]).toMatch(/TLSError\/DelegationNotPermitted/)
    const delegation = object('TLSCertificateDelegation', 'certs/d', {
      spec: { delegations: [{ secretName: 'tls', targetNamespaces: ['a'] }] },
    })
    const result = run(web, root('certs/tls'), shared, delegation)
    expect(routesOf(result.ir, 'https')).toEqual(['x.test prefix / → a/web/80'])
    expect(result.ir.certificates.map(({ name }) => name)).toEqual([
      expect.stringMatching(/^certs\/tls\/[0-9a-f]{10}$/),
    ])
  })

  it('get a new name when their content changes', () => {
    const names = [good, other].map(({ certPem, keyPem }) =>
      run(web, root('tls'), secret('a/tls', certPem, keyPem)).ir.certificates.map(({ name }) => name),
    )
    expect(names[0]).not.toEqual(names[1])
  })
})
