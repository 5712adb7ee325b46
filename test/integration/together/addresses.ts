/** Addresses on `lo` of the network namespace, by what listens there. Nothing outside of it can be reached. */
export const DNS_ADDRESS = '10.77.0.53'
/** The gateway in the process of the manager. */
export const HUB_ADDRESS = '10.77.0.80'

export const MEMBERS = ['eu1', 'us1'] as const
export type MemberName = (typeof MEMBERS)[number]

/** Of a member: where its gateway listens, which its Ingresses have in their statuses; its node; its Pod. */
export const GATEWAY = { eu1: '10.77.1.1', us1: '10.77.2.1' } as const
export const NODE = { eu1: '10.77.1.2', us1: '10.77.2.2' } as const
export const POD = { eu1: '10.77.1.3', us1: '10.77.2.3' } as const

export const ALL_ADDRESSES: readonly string[] = [
  DNS_ADDRESS,
  HUB_ADDRESS,
  ...Object.values(GATEWAY),
  ...Object.values(NODE),
  ...Object.values(POD),
]
