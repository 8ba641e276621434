"""What each node becomes, one family a module. `vm.emit.tables` lists which function writes which node."""
