import { readFileSync } from 'node:fs'
import { createApiServer } from '@seamark/apiserver'
import { Client } from './client.ts'
import { http2, inProcess } from './transport.ts'
const f = (n: string) => readFileSync(`/tmp/real/${n}`, 'utf8')
const server = createApiServer({ onError: (e) => console.error('ONERROR', e), controllers: false })
const ours = new Client(inProcess(server))
const realT = http2('https://127.0.0.1:7443', { ca: f('ca.crt'), cert: f('admin.crt'), key: f('admin.key') })
const real = new Client(realT)
const run = `t${Date.now().toString(36)}`
const mod = await import(process.argv[2]!) as { steps: (run: string) => any[] }
function norm(v: any, map: Map<string, string>): any {
  if (Array.isArray(v)) return v.map((x) => norm(x, map))
  if (v && typeof v === 'object') { const o: any = {}; for (const k of Object.keys(v).sort()) { const x = v[k]
      if (k === 'continue' && x === '') continue
      if ((k === 'description') ) { continue }
      if ((k === 'uid' || k === 'resourceVersion') && typeof x === 'string' && x !== '') { const id = k + ':' + x; if (!map.has(id)) map.set(id, `${k}#${[...map.keys()].filter((q) => q.startsWith(k)).length}`); o[k] = k === 'resourceVersion' ? 'RV' : 'UID'; continue }
      o[k] = norm(x, map) } return o }
  if (typeof v === 'string') return v.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME').replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID').replace(/resource version: \d+( \(\d+\))?/g, 'resource version: N').replace(/current: \d+/g, 'current: N').replace(/BAD_[a-z0-9]{5}/g, 'BAD_GEN').replace(/resourceVersion: "\d+"/g, 'RV')
  return v
}
function diff(a: any, b: any, path = ''): string[] {
  if (JSON.stringify(a) === JSON.stringify(b)) return []
  if (a && b && typeof a === 'object' && typeof b === 'object' && Array.isArray(a) === Array.isArray(b)) {
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((k) => diff(a[k], b[k], `${path}.${k}`))
  }
  return [`${path}: ours=${JSON.stringify(a)?.slice(0, 700)}  real=${JSON.stringify(b)?.slice(0, 700)}`]
}
const m1 = new Map(), m2 = new Map()
let bad = 0, n = 0
for (const [method, path, o = {}] of mod.steps(run)) {
  n++
  const [a, b] = [await ours.request(method, path, o), await real.request(method, path, o)]
  const pick = (r: any, m: any) => norm({ status: r.status, type: r.headers.get('content-type')?.[0], warnings: [...r.warnings].sort(), body: r.json ?? r.text }, m)
  const d = diff(pick(a, m1), pick(b, m2))
  if (method === 'POST' && path.includes('customresourcedefinitions')) await new Promise((r) => setTimeout(r, 1500))
  if (d.length) { bad++; console.log(`## ${method} ${path} ${o.type ?? ''} ${JSON.stringify(o.body)?.slice(0, 160) ?? ''} ${JSON.stringify(o.query ?? '')}`); for (const x of d.slice(0, 5)) console.log('   ', x) }
}
console.log(`${n} steps, ${bad} differ`)
await realT.close(); await server.close(); process.exit(0)
