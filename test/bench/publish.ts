/**
 * Figures of publish: 10 000 HTTPProxies on a real kube-apiserver where one is found, on the embedded server otherwise, beside
 * a bare `node:http2` loop that makes the same writes.
 */
import { type Figure, shared } from './figure.ts'
import { isReal } from './publish/cluster.ts'
import { convergeBusy, cpuFor, measure as measureOnce } from './publish/measurement.ts'

const SOURCES = 10_000

const measure = shared(async () => measureOnce(SOURCES))

const growth = shared(async () => {
  const small = await cpuFor(1_000)
  const large = await cpuFor(100_000)
  return Math.log(large / small) / Math.log(100)
})

const where = isReal ? 'kube-apiserver' : 'the embedded server'
const loop = `a bare node:http2 loop, 32 in flight, on ${where}`

export const figures: Figure[] = [
  {
    name: 'publish.converge',
    what: '10 000 HTTPProxies to 20 000 children: wall',
    unit: 'ratio',
    bound: { max: 1.25 },
    against: loop,
    runs: 3,
    measure: async (run) => (await measure(run)).converge,
  },
  {
    name: 'publish.converge.busy',
    what: 'the same while another process keeps one core busy: wall',
    unit: 'ratio',
    bound: { max: 1.25 },
    against: loop,
    runs: 3,
    measure: async () => convergeBusy(SOURCES),
  },
  {
    name: 'publish.cpu',
    what: 'our CPU-seconds for it',
    unit: 'ratio',
    bound: { max: 2.2 },
    against: loop,
    runs: 3,
    measure: async (run) => (await measure(run)).cpu,
  },
  {
    name: 'publish.rss',
    what: 'peak resident memory',
    unit: 'MB',
    bound: { max: 200 },
    against: '-',
    runs: 3,
    measure: async (run) => (await measure(run)).rss,
  },
  {
    name: 'publish.stall',
    what: 'event-loop delay p99.9',
    unit: 'ms',
    bound: { max: 50 },
    against: '-',
    runs: 3,
    measure: async (run) => (await measure(run)).stall,
  },
  {
    name: 'publish.restart',
    what: 'restart until every source was decided: wall',
    unit: 'ratio',
    bound: { max: 2 },
    against: `a bare client listing the three kinds on ${where}`,
    runs: 3,
    measure: async (run) => (await measure(run)).restart,
  },
  {
    name: 'publish.restart.writes',
    what: 'write requests of that restart',
    unit: 'count',
    bound: { max: 0 },
    against: '-',
    runs: 3,
    measure: async (run) => (await measure(run)).restartWrites,
  },
  {
    name: 'publish.move',
    what: 'load balancer address changes, 10 000 updates: wall',
    unit: 'ratio',
    bound: { max: 1.25 },
    against: loop,
    runs: 3,
    measure: async (run) => (await measure(run)).move,
  },
  {
    name: 'publish.latency',
    what: 'HTTPProxy created to DNSEndpoint seen at 50/s: p50',
    unit: 'ratio',
    bound: { max: 1.3 },
    against: `a bare client that watches HTTPProxies and applies the DNSEndpoints, on ${where}`,
    runs: 3,
    measure: async (run) => (await measure(run)).latency,
  },
  {
    name: 'publish.growth',
    what: 'exponent of CPU from 1 000 to 100 000 sources',
    unit: 'exponent',
    bound: { max: 1.05 },
    against: 'the same with 1 000',
    runs: 1,
    measure: growth,
  },
]
