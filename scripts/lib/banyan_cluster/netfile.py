# SPDX-License-Identifier: BSD-3-Clause
"""A rail-optimised fabric in ibnetdiscover's format, for a build that has no banyan-topo yet."""


def text(layout, spines=4, links=2, radix=64):
    groups = -(-layout.nodes // layout.group_size)
    leaves = groups * layout.gpus
    switch_guid = lambda number: 0xfc6a1c0300000000 + (number + 1) * 0x40
    hca_guid = lambda host, rail: 0xa088c20300000000 + (host + 1) * 0x1000 + rail * 0x10
    ports = {number: {} for number in range(leaves + spines)}
    names = [f"MF0;leaf-{i + 1:02d}:MQM9790/U1" for i in range(leaves)] + [f"MF0;spine-{i + 1:02d}:MQM9790/U1" for i in range(spines)]
    out = []

    def ca(name, device, guid, leaf, port):
        ports[leaf][port] = f'"H-{guid:016x}"[1]({guid + 1:x}) \t\t# "{name} {device}" lid 0 4xHDR'
        out.append(f'vendid=0x2c9\ndevid=0x1021\nsysimgguid=0x{guid:x}\ncaguid=0x{guid:x}\nCa\t1 "H-{guid:016x}"\t\t# "{name} {device}"\n'
                   f'[1]({guid + 1:x}) \t"S-{switch_guid(leaf):016x}"[{port}]\t\t# lid 0 lmc 0 "{names[leaf]}" lid 0 4xHDR\n')

    ca("sm01", "mlx5_0", hca_guid(0xffff, 0), 0, radix // 2)
    for host, name in enumerate(layout.node_names):
        for rail in range(layout.gpus):
            ca(name, f"mlx5_{rail}", hca_guid(host, rail), host // layout.group_size * layout.gpus + rail, host % layout.group_size + 1)
    for leaf in range(leaves):
        for spine in range(spines):
            for link in range(links):
                up, down = radix // 2 + 1 + spine * links + link, leaf * links + link + 1
                ports[leaf][up] = f'"S-{switch_guid(leaves + spine):016x}"[{down}]\t\t# "{names[leaves + spine]}" lid 0 4xHDR'
                ports[leaves + spine][down] = f'"S-{switch_guid(leaf):016x}"[{up}]\t\t# "{names[leaf]}" lid 0 4xHDR'
    for number, peers in ports.items():
        guid = switch_guid(number)
        lines = "".join(f"[{port}]\t{peers[port]}\n" for port in sorted(peers))
        out.append(f'vendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x{guid:x}\nswitchguid=0x{guid:x}({guid:x})\n'
                   f'Switch\t{max(radix, 2 * leaves)} "S-{guid:016x}"\t\t# "{names[number]}" enhanced port 0 lid 0 lmc 0\n{lines}')
    return "#\n# Topology file: generated for a development cluster\n#\n\n" + "\n".join(out)
