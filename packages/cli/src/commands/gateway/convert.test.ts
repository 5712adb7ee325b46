import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { build } from './convert.ts'

const folder = mkdtempSync(join(tmpdir(), 'convert-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0

async function convert(text: string, ...flags: string[]) {
  const file = join(folder, `${++files}.yaml`)
  writeFileSync(file, text)
  let [output, errors, code] = ['', '', 0]
  const io = {
    stdout: { write: (part: string) => (output += part) } as never,
    stderr: { write: (part: string) => (errors += part) } as never,
    env: {},
    signal: new AbortController().signal,
    exit: (exitCode: number) => (code = exitCode),
  }
  await build(io).parseAsync(['-f', file, ...flags], { from: 'user' })
  const objects = parseAllDocuments(output).map((each) => each.toJS() as { kind: string; spec?: unknown })
  return { objects, output, errors, code }
}

const ROOT = `
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: { name: shop }
spec:
  virtualhost: { fqdn: shop.test }
  routes:
    - { match: /, services: [{ name: web, port: 80 }] }
    - { match: /api, delegate: { name: api } }
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: { name: api }
spec: { routes: [{ match: /api/v1, services: [{ name: api, port: 80 }] }] }
---
apiVersion: v1
kind: Service
metadata: { name: web }
`

describe('seamark convert', () => {
  it('prints HTTPProxies, and other objects as they are; exit code 0', async () => {
    const { objects, errors, code, output } = await convert(ROOT)
    expect(objects.map(({ kind }) => kind)).toEqual(['Service', 'HTTPProxy', 'HTTPProxy'])
    expect(objects[2]?.spec).toEqual({
      routes: [{ conditions: [{ prefix: '/v1' }], services: [{ name: 'api', port: 80 }] }],
    })
    expect([errors, code]).toEqual(['', 0])
    // And back: the same objects.
    const back = await convert(output, '--to', 'IngressRoute')
    expect(back.objects.map(({ kind }) => kind)).toEqual(['Service', 'IngressRoute', 'IngressRoute'])
    expect(back.objects[2]?.spec).toEqual({ routes: [{ match: '/api/v1', services: [{ name: 'api', port: 80 }] }] })
    expect([back.errors, back.code]).toEqual(['', 0])
  })

  it('reports what cannot be expressed, by object and field; exit code 2', async () => {
    const proxy = `
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: { namespace: shop, name: web }
spec:
  virtualhost: { fqdn: shop.test }
  routes: [{ conditions: [{ exact: /a }], services: [{ name: web, port: 80 }] }]
`
    const { errors, code } = await convert(proxy, '--to', 'IngressRoute')
    expect(errors).toBe(
      'HTTPProxy shop/web: spec.routes[0].conditions: an IngressRoute matches by one prefix only: the route would take more requests\n',
    )
    expect(code).toBe(2)
  })

  it('says that there was nothing to convert', async () => {
    const { errors, code } = await convert(ROOT, '--to', 'IngressRoute')
    expect(errors).toBe('no HTTPProxy (projectcontour.io/v1) is given; nothing was converted\n')
    expect(code).toBe(0)
  })
})
