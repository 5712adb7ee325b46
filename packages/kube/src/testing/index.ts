/**
 * For tests of controllers: a real control plane, an in-memory cluster, a scripted peer for network failures, a fake
 * clock.
 */
export { ControlPlane, type ControlPlaneOptions, type User } from './control-plane/control-plane.ts'
export { fakeClock, type FakeClock } from './clock.ts'
export { memoryCluster, type MemoryCluster } from './memory/memory-cluster.ts'
export { startPeer, startRelay, type Peer, type PeerExchange, type PeerOptions, type Relay } from './peer.ts'
