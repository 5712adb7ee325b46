/** What a command asks of a running playground. */
import type { Part } from '../world/local-cluster.ts'

export type ControlRequest =
  | { readonly do: 'stop' | 'start'; readonly cluster: string; readonly part: Part }
  | { readonly do: 'slow'; readonly cluster: string; readonly delayMs: number }
  | { readonly do: 'provider'; readonly state: 'down' | 'up' }
  | { readonly do: 'bad-release' | 'reset' | 'status' }
  | { readonly do: 'traffic'; readonly host: string; readonly perSecond: number }

/** `seamark playground status -o json`. */
export interface PlaygroundStatus {
  /** URL of the page. */
  readonly page: string
  readonly kubeconfig: string
  /** HOST:PORT */
  readonly dns: string
  readonly clusters: readonly {
    readonly name: string
    /** URL */
    readonly api: string
    /** HOST:PORT */
    readonly gateway: string
    /** As the page shows it. */
    readonly state: string
  }[]
}
