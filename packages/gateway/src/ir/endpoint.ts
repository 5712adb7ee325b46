/** Where requests are sent: addresses of the pods of a Service. They change more often than the configuration and are no part of it. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** Endpoints of Services by `namespace/service/portName`; absent: none. */
export type EndpointSource = (name: string) => readonly Endpoint[]
