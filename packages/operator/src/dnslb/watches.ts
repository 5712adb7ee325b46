/**
 * The file of `--watches`: load balancers without a cluster. Each entry becomes the objects that the controller of load
 * balancers decides on, so both modes decide the same. Pure.
 */
import { messageOf } from '@seamark/kube'
import { z } from 'zod'
import type { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { parseYaml } from '../yaml-document.ts'

/** Unknown keys are ignored, as the original does: its own example has some. */
const WatchFile = z.object({
  watches: z.array(
    z.object({
      name: z.string().min(1),
      healthPath: z.string().optional(),
      statusCode: z.number().int().optional(),
      singleton: z.boolean().optional(),
      // Beyond the original: how the targets are checked.
      healthCheck: z.record(z.string(), z.unknown()).optional(),
      targets: z.array(z.object({ IP: z.string().optional(), name: z.string().optional() })).default([]),
    }),
  ),
})

export interface Watch {
  /** Named by its DNS name, without a namespace. */
  readonly loadBalancer: DNSLoadBalancer
  /** Named by their hosts. */
  readonly endpoints: readonly DNSLoadBalancerEndpoint[]
}

export function parseWatches(text: string): readonly Watch[] | { readonly invalid: string } {
  let document: unknown
  try {
    document = parseYaml(text)
  } catch (error) {
    return { invalid: messageOf(error) }
  }
  const parsed = WatchFile.safeParse(document)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return { invalid: [issue?.path.join('.'), issue?.message].filter((part) => part !== '').join(': ') }
  }
  return parsed.data.watches.map(({ name, healthPath, statusCode, singleton, healthCheck, targets }): Watch => ({
    loadBalancer: {
      metadata: { name },
      spec: {
        DNSName: name,
        ...(healthPath !== undefined && { healthPath }),
        ...(statusCode !== undefined && { statusCode }),
        ...(singleton !== undefined && { singleton }),
        ...(healthCheck !== undefined && { healthCheck }),
      },
    },
    endpoints: targets.map(({ IP, name: host }) => ({
      metadata: { name: host ?? IP ?? '' },
      spec: {
        loadbalancer: name,
        ...(IP !== undefined && { ipaddress: IP }),
        ...(host !== undefined && { cname: host }),
      },
    })),
  }))
}
