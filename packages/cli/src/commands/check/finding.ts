/** What `seamark check` says about one thing. */
export interface Finding {
  readonly topic: 'API server' | 'kinds' | 'rights' | 'providers' | 'clock' | 'DNS ports' | 'beside'
  /** ok and note: nothing to do. warning: it works, and not as well. fault: it does not work. */
  readonly state: 'ok' | 'note' | 'warning' | 'fault'
  /** With what to do, where there is something. */
  readonly message: string
}

export const isOpen = ({ state }: Finding): boolean => state === 'warning' || state === 'fault'
