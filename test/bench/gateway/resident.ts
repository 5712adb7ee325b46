/** A process with the objects, their configuration and a proxy that serves it; prints its resident memory. */
import { build, BUILD_DEFAULTS, createProxy } from '@seamark/gateway'
import { residentBytes } from '../resident.ts'
import { worldOf } from './objects.ts'

const world = worldOf()
const proxy = createProxy({ http: { host: '127.0.0.1', port: 0 }, endpoints: () => [] })
for (let round = 0; round < 5; round++) proxy.apply(build(world, BUILD_DEFAULTS).ir)
await proxy.listen()
process.stdout.write(`${residentBytes('VmRSS')}\n`)
await proxy.close(0)
