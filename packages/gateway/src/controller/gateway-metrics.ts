/** Metrics of the gateway. Label values never contain hosts or names: their number is bounded. */
import { Counter, type Registry } from 'prom-client'

export interface GatewayMetrics {
  /** A request was answered with 500 because of the regular expressions of its host. */
  regexExceeded(): void
}

export function createGatewayMetrics(registry: Registry): GatewayMetrics {
  const exceeded = new Counter({
    name: 'seamark_gateway_regex_exceeded_total',
    help: 'Requests answered with 500 because the regular expressions and other conditions of their host take too many steps',
    registers: [registry],
  })
  return { regexExceeded: () => exceeded.inc() }
}
