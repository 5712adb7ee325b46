import { createApiServer } from '@seamark/apiserver'
import { samples } from './bad-requests/generate.ts'
import { crd, rope } from './bad-requests/crd.ts'
const server = createApiServer({ anonymous: 'refused', authorization: 'RBAC' })
const send = async ({ method, path, headers, body = '', isAnonymous }: any) => {
  const [p = '', q = ''] = path.split('?', 2)
  const r: any = await server.handle({ method, path: p, query: new URLSearchParams(q), headers, body: Buffer.from(body), ...(isAnonymous ? {} : { identity: { name: 'admin', groups: ['system:masters'] } }) })
  return { status: r.status, text: r.kind === 'stream' ? 'STREAM' : Buffer.concat(r.body).toString() }
}
const h = { 'content-type': 'application/json' }
await send({ method: 'POST', path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', headers: h, body: JSON.stringify(crd('ropes.bad.test')) })
await send({ method: 'POST', path: '/api/v1/namespaces/default/configmaps', headers: h, body: JSON.stringify({ metadata: { name: 'there' }, data: { a: '1' } }) })
await send({ method: 'POST', path: '/apis/bad.test/v1/namespaces/default/ropes', headers: h, body: rope({}, 'there') })
const bad = new Map<string, string>()
let n = 0
const t = performance.now()
for (const r of samples(150, 11)) { n++; const a = await send(r); if (!r.codes.includes(a.status)) bad.set(r.what, `${r.method} ${r.path} ${(r.body ?? '').slice(0, 200)} -> ${a.status} (want ${r.codes}) ${a.text.slice(0, 250)}`) }
console.log(n, 'requests', Math.round(performance.now() - t), 'ms'); for (const [k, v] of bad) console.log('-', k, '::', v.slice(0, 480))
