import { describe, expect, it } from 'vitest'
import { routesOf, run, web } from '../../testing/build-fixture.ts'
import { object, rootProxy, service } from '../../testing/index.ts'

describe('Ingress', () => {
  const ingress = (key: string, spec: object, meta: object = {}) => object('Ingress', key, { spec }, meta)
  const path = (path: string, pathType: string) => ({
    path,
    pathType,
    backend: { service: { name: 'web', port: { number: 80 } } },
  })

  it('compares Prefix by segment, and takes ImplementationSpecific as string prefix or regex', () => {
    const paths = [
      path('/a/', 'Prefix'),
      path('/b', 'ImplementationSpecific'),
      path('/c[0-9]+', 'ImplementationSpecific'),
    ]
    const { ir } = run(web, ingress('a/web', { rules: [{ host: 'X.test', http: { paths } }] }))
    expect(routesOf(ir)).toEqual([
      'x.test regex /c[0-9]+ → a/web/80',
      'x.test prefix /b → a/web/80',
      'x.test segment /a → a/web/80',
    ])
  })

  it('limits a wildcard host to one label', () => {
    const { ir } = run(web, ingress('a/web', { rules: [{ host: '*.x.test', http: { paths: [path('/', 'Prefix')] } }] }))
    expect(routesOf(ir)).toEqual(['*.x.test prefix / [:authority] → a/web/80'])
  })

  it('of another class is not served', () => {
    const spec = { ingressClassName: 'nginx', rules: [{ host: 'x.test', http: { paths: [path('/', 'Prefix')] } }] }
    expect(routesOf(run(web, ingress('a/web', spec)).ir)).toEqual([])
  })

  it('loses a match to an older Ingress and to an HTTPProxy, with a finding', () => {
    const spec = { rules: [{ host: 'x.test', http: { paths: [path('/', 'Prefix')] } }] }
    const result = run(
      web,
      service('b/web'),
      ingress('a/old', spec, { creationTimestamp: '2025-01-01T00:00:00Z' }),
      ingress('b/new', spec),
      rootProxy('a/root', 'x.test'),
    )
    expect(result.ir.listeners[0]?.hosts[0]?.routes.map(({ origin }) => origin.kind)).toEqual(['HTTPProxy'])
    expect(result.findings.map(({ origin, message }) => `${origin.name}: ${message}`)).toEqual([
      'old: spec.rules[0].http.paths[0]: x.test/ is served by HTTPProxy a/root, which has the same match',
      'new: spec.rules[0].http.paths[0]: x.test/ is served by Ingress a/old, which has the same match',
    ])
  })
})
