"""What topics and warehouses may hold that earlier versions of Lithify do not support."""
