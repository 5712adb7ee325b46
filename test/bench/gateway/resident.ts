/** A process with the objects, their configuration and a proxy that serves it; prints its resident memory. */
import { build, BUILD_DEFAULTS, createProxy } from '@seamark/gateway'
import { residentBytes } from '../resident.ts'
import { environmentOf } from './objects.ts'

const environment = environmentOf()
const proxy = createProxy({ http: { host: '127.0.0.1', port: 0 }, endpoints: () => [] })
for (let round = 0; round < 5; round++) proxy.apply(build(environment, BUILD_DEFAULTS).ir)
await proxy.listen()
process.stdout.write(`${residentBytes('VmRSS')}\n`)
await proxy.close(0)
