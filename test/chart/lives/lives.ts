import { admission } from './admission.ts'
import { balance } from './balance.ts'
import { dashboard } from './dashboard.ts'
import { dns } from './dns.ts'
import { envoy } from './envoy.ts'
import { fleet } from './fleet.ts'
import { gateway } from './gateway.ts'
import { globalGateway } from './global-gateway.ts'
import type { Life, MemberCluster } from './life.ts'
import { publish } from './publish.ts'
import { records } from './records.ts'
import { wildcard } from './wildcard.ts'

export function lives(member: MemberCluster): Life[] {
  return [
    publish,
    records(),
    dns(),
    balance(),
    wildcard(member),
    fleet(member),
    gateway,
    globalGateway(member),
    envoy,
    dashboard(),
    admission(),
  ]
}
